# SPDX-License-Identifier: Apache-2.0
"""What the node of the preset `small` keeps to (docs/small-nodes.md). `scripts/test small` builds it and runs this;
TC_BUILD_DIR has the ordinary commands and examples."""

import os
import pathlib
import re

import pytest

import kit

PROGRAM = kit.BUILD.parent / "small/bin/ifunc"
PLUGIN = kit.BUILD.parent / "small/lib/libthreechains_tls.so"
PROGRAM_LIMIT = 2_500_000  # bytes
MEMORY_LIMIT = 4_000_000  # bytes
SMALL = kit.Machine("small", [str(PROGRAM)])

# What is measured has no TLS: both ends of a TCP connection name the network.
TRUSTED = ("--trust-network", "127.0.0.0/8")

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the preset `small` is not built (scripts/test small)")


def serve(t, *options, machine=SMALL):
    return t.serve("--listen", "127.0.0.1:0", *TRUSTED, *options, env=kit.TCP, machine=machine)


def send(t, ifunc, node):
    return t.ifunc("send", ifunc, node.address, "--payload", "you", *TRUSTED, env=kit.TCP)


def bitcode(t):
    return t.build(kit.ROOT / "examples/02-hello/hello.c", "--no-object", "-q")


def own_bytes(pid):
    """Resident memory of the process's own: anonymous, its code arena and rings, and the resident part of its program."""
    own, counted = 0, "Anonymous:"
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            name = words[5] if len(words) > 5 else ""
            counted = "Rss:" if re.search(r"bin/ifunc$|^/memfd|^/dev/shm", name) else "Anonymous:"
        elif words[0] == counted:
            own += int(words[1]) * 1024
    return own


def test_its_program_keeps_to_its_size_and_needs_the_c_library_alone(t):
    size = os.path.getsize(PROGRAM)
    print(f"program: {size} bytes")
    assert size <= PROGRAM_LIMIT
    libraries = t.run("ldd", str(PROGRAM)).out
    for unwanted in ("LLVM", "libucp", "libstdc++", "libfmt", "libspdlog", "libzstd", "libsodium"):
        assert unwanted not in libraries, libraries


def test_a_node_without_llvm_keeps_to_its_size(t):
    node = serve(t)
    result = send(t, str(kit.BUILD / "ifuncs/hello.ifunc"), node)
    assert result.code == 0 and result.out == "Hello, you, from node 0", result
    own = own_bytes(node.pid)
    print(f"resident after the first ifunc: {own} bytes of its own, {node.memory_kib()} KiB with shared libraries")
    assert own <= MEMORY_LIMIT


def test_without_the_plugin_tcp_reaches_trusted_networks_alone_and_says_why(t):
    node = serve(t)
    result = t.run(str(PROGRAM), "send", str(kit.BUILD / "ifuncs/hello.ifunc"), node.address, "--tls-plugin", "nowhere",
                   env=kit.TCP)
    assert result.code != 0 and "trust-network" in result.err, result


def test_with_the_plugin_beside_it_it_talks_encrypted_to_nodes_with_its_key(t):
    if not PLUGIN.exists():
        pytest.skip("there is no OpenSSL 3 to build libthreechains_tls.so with")
    libraries = t.run("ldd", str(PLUGIN)).out
    assert "libssl" in libraries and "libstdc++" not in libraries, libraries
    node = t.serve("--listen", "127.0.0.1:0", env=kit.TCP, machine=SMALL)
    result = t.ifunc("send", str(kit.BUILD / "ifuncs/hello.ifunc"), node.address, "--payload", "you", env=kit.TCP)
    assert result.code == 0 and result.out == "Hello, you, from node 0", result


def test_bitcode_alone_is_refused_with_the_reason(t):
    result = send(t, bitcode(t), serve(t))
    assert result.code != 0 and "no LLVM" in result.err, result


def test_bitcode_is_compiled_by_a_helper(t):
    helper = serve(t, "--compile-for", "any", machine=kit.Machine.native())
    result = send(t, bitcode(t), serve(t, "--compile-at", helper.address))
    assert result.code == 0 and result.out == "Hello, you, from node 0", result
