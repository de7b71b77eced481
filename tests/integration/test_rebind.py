# SPDX-License-Identifier: Apache-2.0
"""Libraries that are sent to nodes and replaced there, with real processes (examples/10-rebind, docs/libraries.md)."""

import struct

import pytest

import kit

pytestmark = pytest.mark.unfreed

EXAMPLE = kit.ROOT / "examples/10-rebind"
ALLOWED = ("--allow-export", "hash", "--allow-export", "hash_name")
# Published results of both functions. The ifunc hashes quarters, so it is given the text four times.
FNV1A_OF_ABC, XXH64_OF_ABC = 0xE71FA2190541574B, 0x44BC2CF5AD770999


def demo(t, transport):
    result = t.run(str(EXAMPLE / "demo.sh"), str(kit.BUILD), "3", "10", env=transport, seconds=110)
    assert result.code == 0, result
    assert "mixed or stale             0" in result.out and "lost                       0" in result.out, result
    assert "built against library 'hash', which is not on this node" in result.err, result


def test_a_hash_function_is_swapped_under_load_over_shared_memory(t):
    demo(t, kit.SHM)


def test_a_hash_function_is_swapped_under_load_over_tcp(t):
    demo(t, kit.TCP)


def build(t, source, *options):
    return t.build(str(EXAMPLE / source), *options)


def library(t, version, *options):
    return build(t, f"{version}.c", "--library", "--name", "hash", *options)


def ask(t, node, digest):
    """The name of the version that answers, and its hash of "abc"."""
    result = t.ifunc("send", digest, node.address, "--payload", "abc" * 4, "--hex-out", env=kit.SHM)
    assert result.code == 0, result
    name, *hashes = struct.unpack("<8s4Q", bytes.fromhex(result.out.strip()))
    assert len(set(hashes)) == 1, result
    return name.rstrip(b"\0").decode(), hashes[0]


def send(t, node, bundle):
    result = t.ifunc("send", bundle, node.address, env=kit.SHM)
    assert result.code == 0, result


def versions_replace_each_other(t, library_form, user_form):
    node = t.serve(*ALLOWED, "--stats", env=kit.SHM)
    old, new = library(t, "fnv1a", library_form), library(t, "xxh64", library_form)
    digest = build(t, "digest.c", "--against", old, user_form)
    for bundle, answer in ((old, ("fnv1a", FNV1A_OF_ABC)), (new, ("xxh64", XXH64_OF_ABC)), (old, ("fnv1a", FNV1A_OF_ABC))):
        send(t, node, bundle)
        assert ask(t, node, digest) == answer
    assert node.stop() == 0
    assert (node.stats["rebinds"], node.stats["codes"], node.stats["retired"]) == (2, 2, 0), node.stats


def test_a_library_and_its_user_as_bitcode(t):
    versions_replace_each_other(t, "--no-object", "--no-object")


def test_a_library_as_machine_code_and_its_user_as_bitcode(t):
    versions_replace_each_other(t, "--no-bitcode", "--no-object")


def test_a_library_as_bitcode_and_its_user_as_machine_code(t):
    versions_replace_each_other(t, "--no-object", "--no-bitcode")


def test_exports_without_permission_are_refused_by_name(t):
    node = t.serve("--allow-export", "hash_name", env=kit.SHM)
    refused = t.ifunc("send", library(t, "fnv1a"), node.address, env=kit.SHM)
    assert refused.code != 0 and "it exports 'hash'" in refused.err and "--allow-export hash" in refused.err, refused


def test_two_libraries_cannot_export_one_name(t):
    node = t.serve(*ALLOWED, env=kit.SHM)
    old = library(t, "fnv1a")
    send(t, node, old)
    other = build(t, "xxh64.c", "--library", "--name", "other")
    refused = t.ifunc("send", other, node.address, env=kit.SHM)
    assert refused.code != 0 and "another library exports already" in refused.err, refused
    assert ask(t, node, build(t, "digest.c", "--against", old))[0] == "fnv1a"


def test_a_library_that_uses_another_is_refused(t):
    node = t.serve("--allow-export", "*", env=kit.SHM)
    old = library(t, "fnv1a")
    send(t, node, old)
    source = t.write("twice.c", '#include <stddef.h>\n#include <stdint.h>\n'
                     'uint64_t hash(const void *bytes, size_t size);\n'
                     'uint64_t hash_twice(const void *bytes, size_t size) { return 2 * hash(bytes, size); }\n')
    refused = t.ifunc("send", t.build(source, "--library", "--against", old), node.address, env=kit.SHM)
    assert refused.code != 0 and "'hash'" in refused.err, refused
    assert "libraries that are sent do not link to each other" in refused.err, refused


class TwoHosts:
    """A node on one, who sends it libraries on the other."""

    def __init__(self, t):
        (self.one, self.address), (self.two, self.sender) = t.namespaces(2)
        self.t, self.env = t, kit.TCP

    def serve(self, *options):
        return self.t.serve("--listen", f"{self.address}:0", *options, env=self.env,
                            prefix=kit.inside(self.one))

    def send(self, bundle, node, *options):
        return self.t.run(*kit.inside(self.two), kit.IFUNC, "send", bundle, node.address, *options,
                          env=self.env)


def test_where_everybody_is_trusted_a_library_still_needs_permission_for_its_host(t):
    hosts, old = TwoHosts(t), library(t, "fnv1a")
    refused = hosts.send(old, hosts.serve("--allow-export", "hash*@10.99.0.77"))
    assert refused.code != 0 and f"libraries from '{hosts.sender}'" in refused.err, refused
    taken = hosts.send(old, hosts.serve("--allow-export", f"hash*@{hosts.sender}"))
    assert taken.code == 0, taken


# What a peer says of itself was believed.
def test_a_peer_that_claims_another_address_has_the_permissions_of_its_own(t):
    hosts, old = TwoHosts(t), library(t, "fnv1a")
    refused = hosts.send(old, hosts.serve("--allow-export", "hash*@127.0.0.1"), "--listen", "127.0.0.1:0")
    assert refused.code != 0 and f"libraries from '{hosts.sender}'" in refused.err, refused
