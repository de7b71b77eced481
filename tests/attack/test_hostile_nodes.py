# SPDX-License-Identifier: Apache-2.0
"""Nodes that are not what a client looks for: it says nothing to them."""

import contextlib
import socket
import ssl
import threading

import pytest

import attack
import sessions
from kit import TCP


class NodeByHand:
    """Answers one client with Python's TLS, and keeps what it says inside the session."""

    def __init__(self, files, **options):
        self.listener, self.heard = socket.create_server(("127.0.0.1", 0)), b""
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.context = sessions.context(files, server=True, **options)
        self.thread = threading.Thread(target=self.answer, daemon=True)
        self.thread.start()

    def answer(self):
        with contextlib.suppress(OSError):
            plain, _ = self.listener.accept()
            plain.settimeout(attack.PATIENCE)
            with plain, self.context.wrap_socket(plain, server_side=True) as peer:
                while more := peer.recv(65536):
                    self.heard += more

    def said_to(self):
        self.listener.close()
        self.thread.join(attack.PATIENCE)
        return self.heard


def is_not_talked_to(t, files, pattern, **options):
    node = NodeByHand(files, **options)
    result = t.ifunc("send", t.build("hello.c"), node.address, "--payload", "secret", "--timeout", "20000", env=TCP)
    attack.says_one_line(result, pattern)
    assert node.said_to() == b"", "a client says something to a node that is none"


def test_a_client_says_nothing_to_a_node_with_another_kind_of_key(t):
    files = sessions.self_signed(t, t.path("other.pem"), "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    is_not_talked_to(t, files, "handshake failed")


@pytest.mark.parametrize("protocol", [None, "h2"], ids=["none", "another"])
def test_a_client_says_nothing_to_a_node_of_another_protocol(t, protocol):
    is_not_talked_to(t, sessions.certificate(t, t.own_home), "does not speak threechains/1", protocol=protocol)


def test_a_client_says_nothing_to_a_node_of_an_older_version_of_tls(t):
    is_not_talked_to(t, sessions.certificate(t, t.own_home), "handshake failed", version=ssl.TLSVersion.TLSv1_2)


def test_a_client_says_nothing_to_a_node_whose_key_is_revoked(t):
    node = t.home("node")
    t.own_home.trust("node", node, "revoked=2020-01-01")
    is_not_talked_to(t, sessions.certificate(t, node), r"keyring, line 1 \(node\): the key was revoked")


def test_a_client_greets_a_node_by_hand_that_has_its_own_key(t):
    """So that the tests above are known to fail for the reason that they name."""
    heard, files, hello = b"", sessions.certificate(t, t.own_home), t.build("hello.c")
    for timeout_ms in [1000, 5000, 30_000]:  # the client waits for an answer until then; a busy machine needs time to greet
        node = NodeByHand(files)
        result = t.ifunc("send", hello, node.address, "--payload", "you", "--timeout", str(timeout_ms), env=TCP)
        heard = node.said_to()
        if heard:
            break
    assert result.code == 1 and b"TCN1" in heard, result
