# SPDX-License-Identifier: Apache-2.0
"""Bundles that say of a slice that it is for another processor than it is. What stands in ELF files is in
src/node/slices_test.cc."""

import os
import pathlib
import struct

import kit

HERE = os.uname().machine
ELSEWHERE = "aarch64" if HERE != "aarch64" else "x86_64"


def relabelled(t, old, new):
    """hello.ifunc, built for `old`, that says it is for `new`. A content id of its own, so that all hashes hold."""
    file = pathlib.Path(t.build("hello.c", "--target", old))
    content = file.read_bytes()
    size, = struct.unpack_from("<I", content, 4)
    manifest = content[8:8 + size]
    before, after = (bytes([len(text)]) + text.encode() for text in (old, new))
    assert manifest.count(before) >= 1, manifest
    manifest = manifest.replace(before, after)
    file.write_bytes(content[:4] + struct.pack("<I", len(manifest)) + manifest + content[8 + size:])
    return str(file)


def check_refused(t, ifunc, *words, serve=()):
    node = t.serve(*serve)
    result = t.ifunc("send", ifunc, node.address)
    assert result.code == 1, result
    for word in ["hello", *words]:
        assert word in result.err, (word, result)
    good = t.ifunc("send", t.build("hello.c"), node.address, "--payload", "world")
    assert (good.code, good.out) == (0, "hello, world"), good


def test_machine_code_of_another_processor_is_refused_with_both_names(t):
    lie = relabelled(t, f"{ELSEWHERE}-linux-gnu", f"{HERE}-linux-gnu")
    check_refused(t, lie, "object is for ELF machine", HERE, serve=["--no-bitcode"])


def test_bitcode_of_another_processor_is_refused_with_its_name(t):
    lie = relabelled(t, f"{ELSEWHERE}-linux-gnu", f"{HERE}-linux-gnu")
    check_refused(t, lie, ELSEWHERE, serve=["--no-object"])


def test_a_big_endian_slice_is_no_code_for_this_node(t):
    check_refused(t, relabelled(t, f"{HERE}-linux-gnu", "s390x-linux-gnu"), "holds no code for")


def test_a_32_bit_slice_is_no_code_for_this_node(t):
    check_refused(t, relabelled(t, f"{HERE}-linux-gnu", "i686-linux-gnu"), "holds no code for")


def test_a_bundle_for_another_processor_says_how_to_build_it_for_this_one(t):
    check_refused(t, t.build("hello.c", "--target", f"{ELSEWHERE}-linux-gnu"), "holds no code for", f"--target {HERE}")
