# SPDX-License-Identifier: Apache-2.0
"""Nodes without LLVM that have bitcode compiled by another node: `ifunc serve --compile-at` (docs/small-nodes.md).

Who waits for whom, and helpers that lie, are in src/node/remote_compile/remote_compile_test.cc; other processors are in
test_mixed.py."""

import hashlib
import os
import pathlib
import signal
import struct
import time

import pytest

import kit
from kit import inside

SMALL = ["--no-bitcode"]


def bitcode(t, name="hello.c", *options):
    return t.build(name, "--no-object", *options)


def small(t, *options):
    return t.serve("--listen", "127.0.0.1:0", "--stats", "--name", "drive", *SMALL, *options)


def helper(t, *options):
    return t.serve("--listen", "127.0.0.1:0", "--stats", "--name", "aide", "--compile-for", "user", *options)


def test_bitcode_is_compiled_by_a_helper_for_this_cpu(t):
    aide = helper(t)
    node = small(t, "--compile-at", aide.address)
    for _ in range(2):
        result = t.ifunc("send", bitcode(t), node.address, "--payload", "world")
        assert (result.code, result.out) == (0, "hello, world"), result
    assert "libLLVM" not in node.maps() and "libLLVM" not in aide.maps()
    assert node.stop() == 0 and aide.stop() == 0
    assert node.stats["compile-requests"] == 1, node.stats
    assert aide.stats["compiled-for-others"] == 1, aide.stats


def test_what_is_got_lasts_in_the_cache_directory(t):
    aide = helper(t)
    for asks in [1, 0]:
        node = small(t, "--compile-at", aide.address, "--cache-dir", t.path("cache"))
        result = t.ifunc("send", bitcode(t), node.address, "--payload", "world")
        assert (result.code, result.out) == (0, "hello, world"), result
        assert node.stop() == 0
        assert node.stats["compile-requests"] == asks, node.stats


def test_an_ifunc_that_is_sent_on_to_the_same_node_is_compiled_too(t):
    aide = helper(t)
    node = small(t, "--compile-at", aide.address)
    hello = bitcode(t)
    sender = t.write("to_self.c", """
        #include <threechains/ifunc.h>
        void to_self_main(void *payload, size_t size, void *args) {
          (void)args;
          if (tc_forward_as(tc_id(), "hello", payload, size) != TC_OK) tc_fail(1, "cannot forward");
        }""")
    whole = t.path("to_self.ifunc")
    assert t.ifunc("build", sender, "--no-object", "--with", hello, "-o", whole).code == 0
    result = t.ifunc("send", whole, node.address, "--payload", "world")
    assert (result.code, result.out) == (0, "hello, world"), result
    assert node.stop() == 0
    assert node.stats["compile-requests"] == 2, node.stats


@pytest.mark.parametrize("assembly", ['__asm__ volatile("nop");', '}\n__asm__(".globl made\\nmade: .zero 64");\nvoid after(void) {'],
                         ids=["in_line", "at_file_scope"])
def test_assembly_is_compiled_for_nobody_and_the_helper_serves_on(t, assembly):
    aide = helper(t)
    node = small(t, "--compile-at", aide.address)
    source = t.write("by_hand.c", f"""
        #include <threechains/ifunc.h>
        void by_hand_main(void *payload, size_t size, void *args) {{ (void)args; tc_reply(payload, size); {assembly} }}""")
    result = t.ifunc("send", bitcode(t, source, "--allow-asm"), node.address, "--payload", "world")
    assert result.code != 0 and "assembly" in result.err and not result.out, result
    result = t.ifunc("send", bitcode(t), node.address, "--payload", "world")
    assert (result.code, result.out) == (0, "hello, world"), result
    assert node.running() and aide.running()


def test_the_sender_reads_who_refused_and_what_to_do(t):
    unwilling = t.serve("--listen", "127.0.0.1:0", "--name", "aide")
    nobody, = kit.free_addresses(1)
    for helper_address, words in [
            (None, ["build it without --no-object", "--target", "--compile-at"]),
            (unwilling.address, ["aide compiles for nobody", "--compile-for", "build it without --no-object"]),
            (nobody, [nobody, "Connection refused", "--compile-for"])]:
        node = small(t, *(["--compile-at", helper_address] if helper_address else []))
        result = t.ifunc("send", bitcode(t), node.address)
        assert result.code == 1, result
        for word in ["node drive", "ifunc 'hello'", *words]:
            assert word in result.err, (word, result)


def test_the_small_nodes_policy_holds_for_what_was_compiled_elsewhere(t):
    aide = helper(t, "--allow-lib", "libz.so.1")
    source = t.write("sum.c", """
        #include <threechains/ifunc.h>
        #pragma comment(lib, "z")
        unsigned long adler32(unsigned long, const unsigned char *, unsigned);
        void sum_main(void *payload, size_t size, void *args) {
          (void)args;
          unsigned long sum = adler32(1, payload, size);
          tc_reply(&sum, sizeof sum);
        }""")
    total = t.path("sum.ifunc")
    assert t.ifunc("build", source, "--no-object", "-o", total).code == 0
    strict = small(t, "--compile-at", aide.address)
    result = t.ifunc("send", total, strict.address, "--hex", "00" * 8)
    assert result.code == 1 and "libz.so.1" in result.err, result
    open_ = small(t, "--compile-at", aide.address, "--allow-lib", "libz.so.1")
    result = t.ifunc("send", total, open_.address, "--hex", "00" * 8, "--hex-out")
    assert (result.code, result.out.strip()) == (0, "0100080000000000"), result


def test_a_helper_that_is_killed_fails_what_waits_and_its_successor_is_asked(t):
    address, = kit.free_addresses(1)
    aide = t.serve("--listen", address, "--name", "aide", "--compile-for", "user")
    node = small(t, "--compile-at", address, "--allow-lib", "libm.so.6")
    assert t.ifunc("send", bitcode(t), node.address, "--payload", "x").code == 0
    aide.signal(signal.SIGKILL)
    aide.wait()
    got = t.build("got.c", "--no-object")
    result = t.ifunc("send", got, node.address, "--hex-out")
    assert result.code == 1 and address in result.err, result
    t.serve("--listen", address, "--name", "aide", "--compile-for", "user")
    time.sleep(1.1)  # so long a failure is the answer to the same question
    result = t.ifunc("send", got, node.address, "--hex-out")
    assert result.code == 0, result


def test_bitcode_that_breaks_the_compiler_costs_neither_node(t):
    aide = helper(t)
    node = small(t, "--compile-at", aide.address)
    good = pathlib.Path(bitcode(t, "hello.c", "--target", f"{os.uname().machine}-linux-gnu")).read_bytes()
    broken = with_last_slice(good, b"BC\xc0\xde" + bytes(range(256)) * 4)
    result = t.ifunc("send", t.write("broken.ifunc", broken), node.address)
    assert result.code == 1 and "ifunc 'hello'" in result.err, result
    result = t.ifunc("send", bitcode(t), node.address, "--payload", "world")
    assert (result.code, result.out) == (0, "hello, world"), result


def with_last_slice(bundle, code):
    """The bundle of one slice with other bytes in it, uncompressed; all sizes and hashes hold."""
    size, = struct.unpack_from("<I", bundle, 4)
    manifest = bytearray(bundle[8:8 + size])
    triple = f"{os.uname().machine}-linux-gnu"
    packing = len(manifest) - 40 - 1 - len(triple) - 1 - 1  # in front of triple, CPU (none), two sizes and the hash
    assert manifest[packing + 2:packing + 2 + len(triple)] == triple.encode(), manifest
    manifest[packing] = 0
    manifest[-40:] = struct.pack("<II", len(code), len(code)) + hashlib.sha256(code).digest()
    return bundle[:8] + bytes(manifest) + code


def test_whom_a_helper_compiles_for_is_its_operators_to_say(t):
    (here, address), (there, other) = t.namespaces(2)
    hello = bitcode(t)
    for whom, code in [("user", 1), ("any", 0)]:
        aide = t.serve("--listen", f"{address}:0", "--compile-for", whom, "--name", "aide",
                       prefix=inside(here))
        node = t.serve("--listen", f"{other}:0", *SMALL, "--compile-at", aide.address,
                       prefix=inside(there))
        result = t.run(*inside(here), kit.IFUNC, "send", hello, node.address, "--payload", "world")
        assert result.code == code, result
        if code != 0:
            assert "compiles for processes of its own user on this host only" in result.err, result
