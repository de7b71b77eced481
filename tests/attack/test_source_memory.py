# SPDX-License-Identifier: Apache-2.0
"""What a source keeps of the code that it has sent."""

import hashlib
import os
import pathlib
import random

import attack
import pytest

import kit
from kit import TCP

BUNDLES = 700
DATA_BYTES = 100_000
PEERS = 3
MOST_GROWTH_KIB = 100 * 1024  # what is sent is 70 MB, and 210 MB when it is kept for each peer


def many_bundles(t):
    """Files of that many ifuncs that differ in their data and in nothing else."""
    chance = random.Random(1)
    data = chance.randbytes(DATA_BYTES)
    source = t.write("large.c", "#include <threechains/ifunc.h>\n"
                     f"static const unsigned char data[] = {{{','.join(map(str, data))}}};\n"
                     "void large_main(void *p, size_t n, void *a) { (void)p; (void)a; tc_reply(data + n, 8); }\n")
    whole = pathlib.Path(t.build(source, "--no-bitcode", "-t", f"{os.uname().machine}-linux-gnu")).read_bytes()
    # An object slice, alone, and its hash in the manifest: see docs/wire-format.md.
    manifest_end = 8 + int.from_bytes(whole[4:8], "little")
    manifest, code = whole[:manifest_end], whole[manifest_end:]
    at = code.index(data[:64])
    assert hashlib.sha256(code).digest() in manifest
    for number in range(BUNDLES):
        other = bytearray(code)
        other[at:at + 8] = b"%08d" % number
        fixed = manifest.replace(hashlib.sha256(code).digest(), hashlib.sha256(other).digest())
        yield t.write(f"bundle{number % 8}.ifunc", fixed + bytes(other))


@pytest.mark.release_only
@pytest.mark.measured
def test_a_source_does_not_keep_every_bundle_it_ever_sent(t):
    nodes = [t.serve("--listen", "127.0.0.1:0", "--code-budget", "4M") for _ in range(PEERS)]
    source = attack.Client(t, TCP)
    for number, node in enumerate(nodes):
        source.must(f"peer {number}")
        source.must(f"connect {node.address}")
    before = 0
    for count, bundle in enumerate(many_bundles(t)):
        source.must(f"register {bundle}")
        for number in range(PEERS):
            source.must(f"peer {number}")
            assert source.ask("call 5000 ") == f"ok {count:08}"
        source.must("deregister")
        if count == BUNDLES // 20:
            before = source.memory_kib()
    grown = source.memory_kib() - before
    assert grown < MOST_GROWTH_KIB, f"the source grew by {grown} KiB"
