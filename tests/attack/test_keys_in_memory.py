# SPDX-License-Identifier: Apache-2.0
"""The private key of a node, after it has proved it to others, is in no memory that a core dump has."""

import base64
import hashlib
import re

import kit
from kit import TCP


def secrets_of(home):
    """What the key file holds, and what signatures are computed with (RFC 8032, section 5.1.5): {name: bytes}."""
    text = home.key_file().read_bytes().split()[2]
    seed = base64.urlsafe_b64decode(text + b"=")
    scalar = bytearray(hashlib.sha512(seed).digest())
    prefix = bytes(scalar[32:])
    scalar[0] &= 248
    scalar[31] = scalar[31] & 127 | 64
    return {"the seed": seed, "its text": text, "the scalar": bytes(scalar[:32]), "the prefix of nonces": prefix}


def dumped_memory(process):
    """(where, bytes) of each mapping that is written into a core: all that is not marked MADV_DONTDUMP."""
    with open(f"/proc/{process.pid}/smaps", encoding="ascii", errors="replace") as smaps:
        entries = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) (\S+).*?\n(?:\w+: .*\n)*?VmFlags: (.*)$", smaps.read(), re.M)
    with open(f"/proc/{process.pid}/mem", "rb", buffering=0) as memory:
        for begin, end, rights, flags in entries:
            if "w" not in rights or "dd" in flags.split() or int(end, 16) - int(begin, 16) > 2**30:
                continue
            memory.seek(int(begin, 16))
            try:
                yield begin, memory.read(int(end, 16) - int(begin, 16))
            except OSError:
                continue  # it went meanwhile


def test_a_key_that_was_proved_to_clients_and_nodes_is_in_no_core_dump(t):
    peer = t.home("peer")
    north, south = t.home("north"), t.home("south")
    for home, others in [(north, [south, peer]), (south, [north, peer]), (peer, [north, south])]:
        for i, other in enumerate(others):
            home.trust(f"other{i}", other, "run=any")
    addresses = kit.free_addresses(2)
    nodes = [t.serve_member(addresses, i, "--data", f"secret={t.write('secret', b'here')}", env={**TCP, **home.env})
             for i, home in enumerate([north, south])]
    answer = t.ifunc("send", t.build("errand.c"), addresses[0], "--payload", "1", "--listen", kit.free_addresses(1)[0],
                     "--timeout", "20000", env={**TCP, **peer.env})
    assert (answer.code, answer.out) == (0, "here"), answer
    for node, home in zip(nodes, [north, south]):
        secrets, seen = secrets_of(home), 0
        for where, memory in dumped_memory(node):
            seen += len(memory)
            found = [name for name, secret in secrets.items() if secret in memory]
            assert not found, f"{found} of {home.path.name}'s key at {where}"
        assert seen > 2**20, "nearly all memory is looked at"
