# SPDX-License-Identifier: Apache-2.0
"""A peer that may run nothing says that it listens where another node of the cluster does."""

import contextlib

import pytest

import attack
import kit
import messages
import sessions
from kit import TCP


def greeting_of(t, address):
    """What a client says that listens at this address, or so it says."""
    other = next(one for one in kit.free_addresses(20) if len(one) == len(address))
    said, _ = messages.record_greeting(t, "--listen", other, env=TCP)
    assert other.encode() in said, (said, other)
    return said.replace(other.encode(), address.encode())


@pytest.mark.parametrize("is_there", [True, False], ids=["beside_the_node", "instead_of_the_node"])
def test_whoever_claims_the_address_of_another_node_gets_neither_its_code_nor_its_calls(t, is_there):
    north, south, ana, mallory = (t.home(name) for name in ["north", "south", "ana", "mallory"])
    north.trust("mallory", mallory, "run=none")
    for node, other in [(north, south), (south, north)]:
        node.trust("other", other, "run=any")
        node.trust("ana", ana, "run=any")
        ana.trust(node.path.name, node, "run=none")
    addresses = kit.free_addresses(2)
    node = t.serve_member(addresses, 0, env={**TCP, **north.env})
    if is_there:
        secret = t.write("secret", b"the secret")
        t.serve_member(addresses, 1, "--data", f"secret={secret}", env={**TCP, **south.env})
    heard = bytearray()
    with attack.dial(node.address) as plain, \
            sessions.context(sessions.certificate(t, mallory)).wrap_socket(plain) as peer:
        attack.send(peer, greeting_of(t, addresses[1]))
        attack.hear(peer, heard, b"TCN1")  # it is let in
        answer = t.ifunc("send", t.build("errand.c"), node.address, "--payload", "1", "--listen", kit.free_addresses(1)[0],
                         "--timeout", "20000", env={**TCP, **ana.env})
        peer.settimeout(1)
        with contextlib.suppress(OSError):
            while more := peer.recv(65536):
                heard += more
    assert b"errand" not in heard, "a peer that may run nothing was sent another one's code"
    if is_there:
        assert (answer.code, answer.out) == (0, "the secret"), answer
    else:
        assert answer.code != 0, answer
