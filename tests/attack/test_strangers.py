# SPDX-License-Identifier: Apache-2.0
"""What a stranger on another host can do: nothing, unless the operator lets in everybody."""

import contextlib
import errno
import socket

import attack
import kit
import messages
from kit import inside


def open_ports(host):
    """TCP ports of that host that take a connection from here."""
    found = []
    for first in range(1, 65536, 512):
        tried = []
        for port in range(first, min(first + 512, 65536)):
            one = socket.socket()
            one.setblocking(False)
            if one.connect_ex((host, port)) not in (errno.EINPROGRESS, errno.ECONNREFUSED, 0):
                raise OSError(f"{host} cannot be reached from here")
            tried.append((port, one))
        for port, one in tried:
            one.settimeout(5)
            with contextlib.suppress(ConnectionRefusedError):
                one.connect((host, port))
                found.append(port)
            one.close()
    return found


def test_a_stranger_on_another_host_finds_no_open_port(t):
    (here, address), (there, _) = t.namespaces(2)
    node = t.serve("--listen", "127.0.0.1:0", prefix=inside(here))
    attack.answers_soon(t, node.address, prefix=inside(here))
    # One that is open, so that the search is known to find what there is.
    with attack.stranger(lambda: attack.Held(one := socket.create_server((address, 0)), one.getsockname()[1]),
                         namespace=here) as known:
        assert attack.stranger_does(lambda: open_ports(address), namespace=there) == [known]


EVERYWHERE = "0.0.0.0:0"


def test_a_stranger_is_refused_before_a_byte_of_his_is_read(t):
    (here, address), (there, _) = t.namespaces(2)
    said = messages.record_conversation(t, t.build("hello.c"), "stranger")
    node = attack.ProgramNode(t, EVERYWHERE, messages.PLAIN_SETTING, prefix=inside(here))

    def say(host):
        return lambda: attack.say(f"{host}:{node.port}", said, until=b"hello, stranger")

    answer = attack.stranger_does(say(address), namespace=there)
    assert attack.KEPT_OUT in answer and "hello, stranger" not in answer, answer
    assert (node.stat("executed"), node.stat("codes"), node.stat("refused-peers")) == (0, 0, 1)
    assert attack.lines_about(node.err, rf"10\.99\.0\.2:\d+ is refused: .*{attack.KEPT_OUT}"), node.err
    # The same bytes from a network that is trusted run the ifunc: it is the sender that was refused.
    assert "hello, stranger" in attack.stranger_does(say("127.0.0.1"), namespace=here)
    assert node.stat("executed") == 1


def test_a_stranger_with_a_key_of_its_own_is_refused(t):
    (here, address), (there, _) = t.namespaces(2)
    stranger, hello = attack.acquainted(t, "stranger", t.own_home), t.build("hello.c")
    node = attack.ProgramNode(t, EVERYWHERE, prefix=inside(here))
    result = t.run(*inside(there), kit.IFUNC, "send", hello, f"{address}:{node.port}", env=stranger.env)
    attack.says_one_line(result, "is in no line of the keyring")
    assert attack.lines_about(node.err, r"10\.99\.0\.2:\d+ is refused: .*is in no line of the keyring"), node.err
    assert (node.stat("executed"), node.stat("codes"), node.stat("refused-peers")) == (0, 0, 1)
    answer = t.run(*inside(there), kit.IFUNC, "send", hello, f"{address}:{node.port}", "--payload", "you")
    assert (answer.code, answer.out) == (0, "hello, you"), "with the node's own key it is let in"


def test_a_strangers_calls_do_not_run_behind_the_greeting_of_a_trusted_peer(t):
    (here, address), (there, _) = t.namespaces(2)
    said = messages.record_conversation(t, t.build("hello.c"), "stranger")
    node = attack.ProgramNode(t, EVERYWHERE, messages.PLAIN_SETTING, prefix=inside(here))
    cut = said.index(b"TCB1") + 64  # in the middle of the code

    def begin():
        peer = attack.dial(f"127.0.0.1:{node.port}")
        peer.sendall(said[:cut])
        return attack.Held(peer)

    with attack.stranger(begin, namespace=here):
        for rest in [said[cut:], said]:
            attack.stranger_does(lambda rest=rest: attack.say(f"{address}:{node.port}", rest), namespace=there)
        assert (node.stat("executed"), node.stat("codes"), node.stat("links")) == (0, 0, 1)
