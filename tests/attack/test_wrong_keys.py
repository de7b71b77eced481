# SPDX-License-Identifier: Apache-2.0
"""Peers whose key is not one that the node lets in, and keys that are not kept as they should be."""

import contextlib
import datetime
import os
import pty
import re
import select
import signal
import socket
import threading
import time

import pytest

import attack
import kit
from kit import TCP

KEY = r"ed25519:[\w-]{43}"
PAST = "2020-01-01"
# On this host nobody is met for the first time otherwise.
REMEMBER = ("--first-contact", "remember")


def node_and_peer(t, *fields):
    """A node with a line for a peer's key, if there are fields for it; and that peer's home."""
    peer = attack.acquainted(t, "peer", t.own_home)
    if fields:
        t.own_home.trust("peer", peer, *fields)
    return attack.ProgramNode(t, "127.0.0.1:0"), peer


def is_kept_out(t, node, peer, pattern, ifunc=None):
    """The peer is told why in one line, the node logs one, and nothing runs."""
    attack.says_one_line(attack.call(t, peer, ifunc or t.build("hello.c"), node), pattern)
    attack.logs_one_line(node, rf" is refused: .*{pattern}")
    assert (node.stat("codes"), node.stat("refused-peers")) == (0, 1)
    node.has_run_nothing()


def test_a_key_that_may_connect_does_so(t):
    node, peer = node_and_peer(t, "run=any")
    result = attack.call(t, peer, t.build("hello.c"), node)
    assert (result.code, result.out, result.err) == (0, "hello, you", ""), result


def test_a_key_that_is_in_no_line_is_refused_and_told_how_it_would_be_let_in(t):
    node, peer = node_and_peer(t)
    key = re.escape(peer.public_key())
    is_kept_out(t, node, peer, rf"{key} is in no line of the keyring .*`ifunc key trust NAME {key}`")


def test_a_process_without_any_key_is_refused_by_the_fresh_one_that_it_makes(t):
    node, peer = node_and_peer(t, "run=any")
    peer.key_file().unlink()
    is_kept_out(t, node, peer, rf"{KEY} is in no line of the keyring .*`ifunc key new default`")


def test_a_first_try_that_is_refused_remembers_no_key(t):
    node = attack.ProgramNode(t, "127.0.0.1:0")
    peer = t.home("peer")
    result = attack.call(t, peer, t.build("hello.c"), node, *REMEMBER)
    attack.says_one_line(result, "is in no line of the keyring|has no keyring")
    assert not peer.known_nodes.exists()


def impostor_for(t, *fields):
    """A peer that knows north, with these fields, and a third node; which has north's address and lets the peer in."""
    north, third, peer = t.home("north"), t.home("third"), t.home("peer")
    third.trust("peer", peer, "run=any")
    node = attack.ProgramNode(t, "127.0.0.1:0", home=third)
    peer.trust("north", north, "run=none", *(field.format(node.address) for field in fields))
    return node, peer, third


def test_an_impostor_in_the_place_of_a_node_that_the_keyring_knows_is_sent_nothing(t):
    node, peer, _ = impostor_for(t)
    attack.says_one_line(attack.call(t, peer, t.build("hello.c"), node), "not known here, and first-contact is keyring")
    node.has_run_nothing()
    assert not peer.known_nodes.exists()


def test_a_node_of_the_keyring_in_the_place_of_another_one_is_sent_nothing(t):
    node, peer, third = impostor_for(t, "at={}")
    peer.trust("third", third, "run=none")
    attack.says_one_line(attack.call(t, peer, t.build("hello.c"), node), r"when north \(keyring, line 1\) has at=")
    node.has_run_nothing()
    peer.write_lines(peer.lines()[1])
    answered = attack.call(t, peer, t.build("hello.c"), node)
    assert (answered.code, answered.out) == (0, "hello, you"), answered


def test_a_node_whose_key_is_temporary_is_remembered_by_nobody(t):
    host, peer = t.home("host"), t.home("peer")
    host.trust("peer", peer, "run=any")
    host.key_file().unlink()
    node = attack.ProgramNode(t, "127.0.0.1:0", home=host)
    result = attack.call(t, peer, t.build("hello.c"), node, *REMEMBER)
    assert (result.code, result.out) == (0, "hello, you"), result
    assert "lasts only as long as its process and is not remembered" in result.err, result
    assert not peer.known_nodes.exists()


def test_a_revoked_key_is_refused(t):
    node, peer = node_and_peer(t, "run=any", f"revoked={PAST}")
    is_kept_out(t, node, peer, r"keyring, line 1 \(peer\): the key was revoked at 2020-01-01")


def test_a_revoked_key_is_refused_by_a_node_that_trusts_everybody(t):
    peer = attack.acquainted(t, "peer", t.own_home)
    t.own_home.trust("peer", peer, f"revoked={PAST}")
    node = attack.ProgramNode(t, "127.0.0.1:0", "trust=any")
    is_kept_out(t, node, peer, r"keyring, line 1 \(peer\): the key was revoked")


def test_an_expired_key_is_refused(t):
    node, peer = node_and_peer(t, "run=any", f"until={PAST}")
    is_kept_out(t, node, peer, r"keyring, line 1 \(peer\): the key expired at 2020-01-01")


def test_a_key_from_another_host_than_its_line_says_is_refused(t):
    node, peer = node_and_peer(t, "run=any", "hosts=10.0.0.0/8")
    is_kept_out(t, node, peer, r"keyring, line 1 \(peer\): hosts=10\.0\.0\.0/8, and it is at 127\.0\.0\.1")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def linked_until(t, peer, client, seconds):
    """A node that answers a call of the peer, whose key expires in so many seconds. Gives the node, and when it expires;
    None if it is known too late that the call was answered before, as on a busy machine."""
    end = (now() + datetime.timedelta(seconds=seconds)).replace(microsecond=0)
    t.own_home.write_lines(f"peer {peer.public_key()} run=any until={end.strftime('%Y-%m-%dT%H:%M:%SZ')}")
    node = attack.ProgramNode(t, "127.0.0.1:0")
    answers = [client.ask(f"connect {node.address}"), client.ask("call 20000 you")]
    if now() >= end:
        client.ask("close")
        node.end()
        return None
    assert answers == ["ok", "ok hello, you"], answers
    return node, end


def test_a_key_that_expires_while_it_is_linked_loses_its_link_within_a_second(t):
    peer = attack.acquainted(t, "peer", t.own_home)
    client = attack.Client(t, {**TCP, **peer.env})
    client.must(f"register {t.build('hello.c')}")
    node, end = next(filter(None, (linked_until(t, peer, client, seconds) for seconds in [3, 6, 12, 24, 48])))
    kit.run_until(lambda: node.stat("links") == 0, "the link ends")
    late, most = (now() - end).total_seconds(), 1.5 * kit.slowness()
    assert -0.1 < late < most, f"{late} s after it expired"
    attack.logs_one_line(node, r"keyring, line 1 \(peer\): the key expired at ")
    assert "ok" not in client.ask("call 2000 you")


def test_revoking_ends_the_links_of_a_key_and_lets_it_in_no_more(t):
    peer = attack.acquainted(t, "peer", t.own_home)
    t.own_home.trust("peer", peer, "run=any")
    node = t.serve("--listen", "127.0.0.1:0", "--stats")
    client = attack.Client(t, {**TCP, **peer.env})
    client.must(f"register {t.build('hello.c')}")
    client.must(f"connect {node.address}")
    assert client.ask("call 20000 you") == "ok hello, you"
    revoked = t.own_home.run("key", "revoke", "peer")
    assert revoked.code == 0, revoked
    node.signal(signal.SIGHUP)
    kit.run_until(lambda: attack.lines_about(node.err, r"line 1 \(peer\): the key was revoked"), "its link ends")
    answer = client.ask("call 2000 you")
    assert not answer.startswith("ok"), answer
    attack.says_one_line(attack.call(t, peer, t.build("hello.c"), node), "the key was revoked")
    attack.answers_soon(t, node.address)
    assert node.stop() == 0
    assert node.stats["executed"] == 2, "the call before, and that of a peer with the node's own key"


def test_a_keyring_that_has_become_wrong_leaves_the_old_one_in_force(t):
    peer = attack.acquainted(t, "peer", t.own_home)
    t.own_home.trust("peer", peer, "run=any")
    node = t.serve("--listen", "127.0.0.1:0")
    t.own_home.write_lines("this is no line")
    node.signal(signal.SIGHUP)
    kit.run_until(lambda: attack.lines_about(node.err, "the keyring stays as it was: .*line 1"), "the node says so")
    result = attack.call(t, peer, t.build("hello.c"), node)
    assert (result.code, result.out) == (0, "hello, you"), result


# ---- The node's own key

def test_a_client_refuses_a_node_whose_key_has_changed(t):
    address = kit.free_addresses(1)[0]
    client, first, second = t.home("client"), t.home("first"), t.home("second")
    for home in (first, second):
        home.trust("client", client, "run=any")
    hello = t.build("hello.c")
    node = attack.ProgramNode(t, address, home=first)
    result = attack.call(t, client, hello, node, *REMEMBER)
    assert (result.code, result.out) == (0, "hello, you"), result
    assert re.search(f"first contact.*{re.escape(first.public_key())}", result.err), result
    assert attack.call(t, client, hello, node).err == "", "it is remembered"
    node.end()

    other = attack.ProgramNode(t, address, home=second)
    attack.says_one_line(attack.call(t, client, hello, other),
                         f"{re.escape(second.public_key())}.*{re.escape(first.public_key())}.*`ifunc key forget {address}`")
    assert other.stat("codes") == 0
    other.has_run_nothing()
    assert client.run("key", "forget", address).code == 0
    assert attack.call(t, client, hello, other, *REMEMBER).out == "hello, you", "as the message said"


def test_a_client_that_refuses_first_contacts_sends_nothing_to_an_unknown_node(t):
    client = t.home("client")
    t.own_home.trust("client", client, "run=any")
    node = attack.ProgramNode(t, "127.0.0.1:0")
    key = re.escape(t.own_home.public_key())
    result = attack.call(t, client, t.build("hello.c"), node, "--first-contact", "refuse")
    attack.says_one_line(result, f"{key}.*first-contact is refuse.*`ifunc key trust NAME {key}`")
    assert not client.known_nodes.exists()
    node.has_run_nothing()


def send_and_answer(t, client, node, answer):
    """`ifunc send` on a terminal of its own, where somebody says that answer to its question. Gives what the terminal showed,
    and the result."""
    args = [str(kit.IFUNC), "send", str(t.build("hello.c")), node.address, "--payload", "you", "--first-contact", "ask"]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(args[0], args, {**os.environ, **kit.TCP, **client.env})
    shown, deadline = "", time.monotonic() + attack.PATIENCE * kit.slowness()
    with contextlib.suppress(OSError):  # how the end of a terminal looks
        while chunk := read_before(terminal, deadline):
            shown += chunk
            if shown.endswith("(yes/no): "):
                os.write(terminal, answer.encode() + b"\n")
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def read_before(terminal, deadline):
    ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
    assert ready, "it says nothing and does not end"
    return os.read(terminal, 4096).decode()


@pytest.mark.parametrize("has_keyring", [False, True], ids=["without_a_keyring", "with_a_keyring"])
def test_a_client_that_asks_sends_to_an_unknown_node_when_its_user_says_yes(t, has_keyring):
    client = t.home("client")
    t.own_home.trust("client", client, "run=any")
    if has_keyring:
        client.trust("somebody", t.home("somebody"), "run=none")
    node, key = attack.ProgramNode(t, "127.0.0.1:0"), t.own_home.public_key()
    for answer in ("no", "", "yesterday", "y"):
        shown, code = send_and_answer(t, client, node, answer)
        assert code == 1 and key in shown and "first-contact is ask" in shown and "hello, you" not in shown, shown
        assert not client.known_nodes.exists(), answer
    node.has_run_nothing()
    shown, code = send_and_answer(t, client, node, "yes")
    assert code == 0 and key in shown and "hello, you" in shown, shown
    shown, code = send_and_answer(t, client, node, "never asked")
    assert code == 0 and "(yes/no)" not in shown and "hello, you" in shown, shown


def test_a_client_that_asks_refuses_where_there_is_nobody_to_ask(t):
    client = t.home("client")
    t.own_home.trust("client", client, "run=any")
    node = attack.ProgramNode(t, "127.0.0.1:0")
    result = t.run("setsid", "--wait", kit.IFUNC, "send", t.build("hello.c"), node.address, "--first-contact", "ask",
                   env={**kit.TCP, **client.env})
    attack.says_one_line(result, "first-contact is ask")
    assert not client.known_nodes.exists()
    node.has_run_nothing()


def test_a_client_that_asks_does_not_ask_about_a_key_that_is_temporary(t):
    host, client = t.home("host"), t.home("client")
    host.trust("client", client, "run=any")
    host.key_file().unlink()
    node = attack.ProgramNode(t, "127.0.0.1:0", home=host)
    shown, code = send_and_answer(t, client, node, "yes")
    assert code == 1 and "(yes/no)" not in shown and "`ifunc key new default` there" in shown, shown
    assert node.stat("executed") == 0


# ---- Files

@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_private_key_that_others_can_reach_is_not_used(t, mode):
    file = t.own_home.new_key("mine")
    os.chmod(file, mode)
    for command in [("serve", "--listen", "127.0.0.1:0"),
                    ("send", t.build("hello.c"), "127.0.0.1:1")]:
        result = t.ifunc(*command, "--key", "mine", seconds=10)
        assert result.code != 0 and re.search(f"{file} may be .* by other users.*chmod 0?600 ", result.err), result
        assert len(result.err.splitlines()) == 1, result


def test_a_private_key_of_another_user_is_not_used(t):
    file = t.own_home.new_key("theirs")
    os.chown(file, attack.OTHER_USER, -1)
    result = t.ifunc("serve", "--listen", "127.0.0.1:0", "--key", "theirs", seconds=10)
    assert result.code != 0 and f"belongs to user {attack.OTHER_USER}" in result.err, result


def test_a_keyring_that_others_can_write_is_not_used(t):
    t.own_home.write_lines()
    os.chmod(t.own_home.keyring, 0o666)
    result = t.ifunc("serve", "--listen", "127.0.0.1:0", seconds=10)
    assert result.code != 0 and re.search(f"{t.own_home.keyring} may be written by other users", result.err), result
    assert len(result.err.splitlines()) == 1, result


@pytest.mark.parametrize("text", ["", "no key at all\n", "threechains-private-key 1 AAAA\n",
                                  "threechains-private-key 2 " + "A" * 43 + "\n", "\0" * 70, "A" * 100_000],
                         ids=["empty", "words", "short", "other_version", "zeros", "large"])
def test_a_private_key_that_is_none_is_refused_without_showing_what_it_holds(t, text):
    file = t.own_home.new_key("odd")
    file.write_text(text)
    result = t.ifunc("serve", "--listen", "127.0.0.1:0", "--key", "odd", seconds=10)
    assert result.code != 0 and str(file) in result.err and len(result.err.splitlines()) == 1, result
    assert "AAAA" not in result.err


# ---- What looks local and is not

def forward(listener, address):
    """As `ssh -L` does: a process of the node's user connects to the node for whoever connects to it."""
    def copy(source, sink):
        try:
            while chunk := source.recv(65536):
                sink.sendall(chunk)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def accept():
        while True:
            try:
                near, _ = listener.accept()
                far = attack.dial(address)
                far.settimeout(None)
            except OSError:
                return
            for ends in [(near, far), (far, near)]:
                threading.Thread(target=copy, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def test_a_forwarder_of_the_same_user_in_front_of_a_node_gains_nothing(t):
    """The node's own user connects, for a stranger of another user and without a known key."""
    node = attack.ProgramNode(t, "127.0.0.1:0")
    os.chmod(t.directory, 0o755)
    hello = t.build("hello.c")
    os.chmod(os.path.dirname(hello), 0o755)
    stranger = attack.acquainted(t, "stranger", t.own_home)
    for folder, _, files in os.walk(stranger.path.parent):
        for name in ["", *files]:
            os.chown(os.path.join(folder, name), attack.OTHER_USER, -1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        forward(listener, node.address)
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def call():
            result = t.ifunc("send", hello, address, "--payload", "you", env={"TC_TRANSPORT": None, **stranger.env})
            return [result.code, result.out, result.err]

        code, out, err = attack.stranger_does(call, uid=attack.OTHER_USER)
    assert (code, out) == (1, "") and "is in no line of the keyring" in err, err
    node.has_run_nothing()
