# SPDX-License-Identifier: Apache-2.0
"""What comes to the port instead of a session, and what somebody between two peers can do to one."""

import random
import re
import socket
import ssl
import threading

import pytest

import attack
import kit
import messages
import sessions
from kit import TCP

SEED = 20_240_229
GARBAGE = 300
AT_ONCE = 8  # clients of the relay that turns bytes


def greeting_of(t):
    return sessions.inside(messages.record_greeting(t, env=TCP)[0])


# ---- No downgrade

def test_a_plain_greeting_is_refused_where_connections_are_encrypted(t):
    said = messages.record_conversation(t, t.build("hello.c"), "you")
    node = attack.ProgramNode(t, "127.0.0.1:0")
    answer = attack.say(node.address, said)
    assert re.search("takes only encrypted connections.*trust-network", answer), answer
    attack.logs_one_line(node, " is refused: .*only encrypted connections")
    assert (node.stat("codes"), node.stat("refused-peers")) == (0, 1)
    node.has_run_nothing()


def answers_with(message):
    """An address where whoever connects is told that. The last of the three gives what each has said, when all have ended."""
    listener, heard, ended = socket.create_server(("127.0.0.1", 0)), [], []

    def serve():
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(attack.PATIENCE)
                said = bytearray()
                heard.append(said)
                try:
                    said += peer.recv(65536)
                    peer.sendall(message)
                    while more := peer.recv(65536):
                        said += more
                except OSError:
                    pass
            ended.append(said)

    def all_heard():
        return kit.run_until(lambda: len(ended) == len(heard) and heard, "somebody has connected, and all have ended")

    threading.Thread(target=serve, daemon=True).start()
    return listener, f"127.0.0.1:{listener.getsockname()[1]}", all_heard


def test_a_client_does_not_speak_plainly_with_a_node_that_asks_for_it(t):
    """Neither by a plain greeting nor by a plain refusal: what it says is the beginning of a session and nothing more."""
    refusal = attack.say(attack.ProgramNode(t, "127.0.0.1:0").address, greeting_of(t)).encode()
    for message in [greeting_of(t), refusal, b"\x15\x03\x03\x00\x02\x02\x28", b""]:
        listener, address, all_heard = answers_with(message)
        with listener:
            result = t.ifunc("send", t.build("hello.c"), address, "--payload", "secret", "--timeout", "1500", env=TCP)
            heard = all_heard()
        assert result.code == 1 and len(result.err.splitlines()) == 1, result
        assert all(said[:1] == b"\x16" for said in heard), heard
        assert not any(b"TCN1" in said or b"secret" in said or b"TCB1" in said for said in heard)


def test_a_client_that_trusts_the_network_does_not_come_in_where_the_node_does_not(t):
    node = attack.ProgramNode(t, "127.0.0.1:0")
    result = attack.call(t, t.own_home, t.build("hello.c"), node, *messages.PLAIN)
    attack.says_one_line(result, "takes only encrypted connections.*trust-network")
    node.has_run_nothing()


def test_nothing_of_a_call_can_be_read_on_the_wire(t):
    node = attack.ProgramNode(t, "127.0.0.1:0")
    relay = sessions.Relay(t, node.address)
    result = t.ifunc("send", t.build("hello.c"), relay.address, "--payload", "a secret", env=TCP)
    assert (result.code, result.out) == (0, "hello, a secret"), result
    wire = b"".join(bytes(way) for said in relay.sessions for way in said.values())
    assert len(wire) > 1000
    for word in [b"secret", b"hello", b"TCN1", b"TCB1", t.own_home.public_key().encode()]:
        assert word not in wire, word


# ---- In between

def test_a_session_that_is_replayed_runs_nothing(t):
    node = attack.ProgramNode(t, "127.0.0.1:0")
    relay = sessions.Relay(t, node.address)
    result = t.ifunc("send", t.build("hello.c"), relay.address, "--payload", "you", env=TCP)
    assert (result.code, result.out) == (0, "hello, you"), result
    said = bytes(relay.sessions[0]["up"])
    for ends in [len(said), len(said) // 2, said.index(b"\x17\x03\x03")]:
        attack.say(node.address, said[:ends])
    assert node.stat("executed") == 1
    kit.run_until(lambda: node.stat("refused-peers") == 3, "all three are refused")
    attack.answers_soon(t, node.address)


def relayed_client(t, node):
    relay = sessions.Relay(t, node.address)
    client = attack.Client(t, TCP)
    client.must(f"register {t.build('hello.c')}")
    return relay, client


def session_with_turned_byte(relay, client, way, number):
    """What the client says of it: the answer of its call, or why there was none."""
    relay.turn = (way, number)
    answer = client.ask(f"connect {relay.address}", attack.PATIENCE)
    if answer == "ok":
        # A call that was run counts as one that was answered: its answer must find the client still waiting.
        answer = client.ask("call 20000 you", attack.PATIENCE)
        client.ask("close", attack.PATIENCE)
    return answer


def turn_each_byte(t, node, way, count):
    """Answers of `count` sessions, in each of which another byte is turned."""
    numbers, answers, lock = iter(range(count)), {}, threading.Lock()

    def work(relay, client):
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            answers[number] = session_with_turned_byte(relay, client, way, number)

    threads = [threading.Thread(target=work, args=relayed_client(t, node)) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == count, "a client has died"
    return answers


@pytest.mark.release_only
@pytest.mark.limit(900)  # some 2600 sessions with their handshakes, and some that stand still until a deadline
@pytest.mark.parametrize("way", ["up", "down"])
def test_of_a_session_no_byte_can_be_turned_unnoticed(t, way):
    node = attack.ProgramNode(t, "127.0.0.1:0", "log=error")
    relay, client = relayed_client(t, node)
    assert session_with_turned_byte(relay, client, None, None) == "ok hello, you"
    client.end()
    whole = relay.sessions[0][way]
    before = node.stat("executed")
    answers = turn_each_byte(t, node, way, len(whole))
    assert node.running()
    good = [number for number, answer in answers.items() if answer == "ok hello, you"]
    assert not [answer for answer in answers.values() if answer.startswith("ok") and answer != "ok hello, you"]
    # Only behind the call can a byte be turned and the call be answered: the last records say goodbye. And TLS ignores one
    # byte, the minor version in front of the first message (RFC 8446, 5.1).
    assert all(number == 2 or number > len(whole) - 150 for number in good), sorted(good)
    if way == "up":
        assert node.stat("executed") - before == len(good), "a call ran of which a byte was turned"
    attack.answers_soon(t, node.address)


# ---- Sessions that are none of ours

def is_refused(t, node, say, pattern):
    before = node.stat("refused-peers")
    say()
    kit.run_until(lambda: node.stat("refused-peers") == before + 1, f"it is refused; the node said {node.err}")
    attack.logs_one_line(node, rf" is refused: .*{pattern}")


def test_clients_that_are_none_of_ours_are_refused_each_in_one_line(t):
    files = sessions.certificate(t, t.own_home)
    greeting = greeting_of(t)
    node = attack.ProgramNode(t, "127.0.0.1:0")

    def by(files, **options):
        return lambda: sessions.say(node.address, greeting, files, **options)

    is_refused(t, node, by(files, protocol="h2"), "no application protocol")
    is_refused(t, node, by(files, version=ssl.TLSVersion.TLSv1_2), "unsupported protocol")
    is_refused(t, node, by(None), "(certificate|CERTIFICATE)")
    is_refused(t, node, lambda: attack.say(node.address, b"GET / HTTP/1.1\r\n\r\n"), "only encrypted connections")
    assert node.stat("codes") == 0
    node.has_run_nothing()


@pytest.mark.parametrize("options", [("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
                                     ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"), ("-algorithm", "ED448")],
                         ids=lambda options: options[1])
def test_a_certificate_with_another_kind_of_key_is_refused(t, options):
    files = sessions.self_signed(t, t.path("other.pem"), *options)
    greeting = greeting_of(t)
    node = attack.ProgramNode(t, "127.0.0.1:0")
    is_refused(t, node, lambda: sessions.say(node.address, greeting, files), "(Ed25519|certificate|signature|CERTIFICATE|SIGNATURE)")
    node.has_run_nothing()


def test_a_client_by_hand_with_a_key_of_the_keyring_is_served(t):
    """So that the tests around this one are known to fail for the reason that they name."""
    peer = t.home("peer")
    t.own_home.trust("peer", peer, "run=any")
    said = messages.record_conversation(t, t.build("hello.c"), "by hand")
    node = attack.ProgramNode(t, "127.0.0.1:0")
    answer = sessions.say(node.address, sessions.inside(said), sessions.certificate(t, peer), until=b"hello, by hand")
    assert "hello, by hand" in answer, (answer, node.err)
    assert node.stat("executed") == 1


def test_a_client_by_hand_with_a_key_that_nobody_knows_is_told_its_key(t):
    stranger = t.home("stranger")
    said = messages.record_conversation(t, t.build("hello.c"), "stranger")
    node = attack.ProgramNode(t, "127.0.0.1:0")
    answer = sessions.say(node.address, sessions.inside(said), sessions.certificate(t, stranger))
    assert f"{stranger.public_key()} is in no line of the keyring" in answer, answer
    assert (node.stat("codes"), node.stat("refused-peers")) == (0, 1)
    node.has_run_nothing()


def test_somebody_elses_certificate_without_the_private_key_is_of_no_use(t):
    """The public half of a key that may run code, with another private key behind it."""
    friend, thief = t.home("friend"), t.home("thief")
    t.own_home.trust("friend", friend, "run=any")
    certificate, _ = sessions.certificate(t, friend)
    _, key = sessions.certificate(t, thief)
    with pytest.raises(ssl.SSLError):
        sessions.context((certificate, key))  # not even Python's TLS goes on with that


def garbage(chance):
    """Beginnings of sessions, more or less."""
    blobs = [chance.randbytes(chance.randrange(1, 3000)) for _ in range(GARBAGE)]
    for blob in blobs[:GARBAGE // 2]:
        yield b"\x16" + blob
    for blob in blobs[GARBAGE // 2:]:
        body = b"\x01" + (len(blob) - 4).to_bytes(3, "big", signed=False) + blob if len(blob) > 4 else blob
        yield b"\x16\x03\x01" + len(body).to_bytes(2, "big") + body


def test_garbage_where_a_session_should_begin_costs_its_own_connection(t):
    node = attack.ProgramNode(t, "127.0.0.1:0")
    blobs = list(garbage(random.Random(SEED)))
    attack.say_all(node.address, blobs)
    assert attack.wait_for_ends(node, len(blobs)) == {"refused-peers": len(blobs), "dropped-links": 0, "links": 0}
    node.has_run_nothing()


def test_garbage_inside_a_session_of_somebody_who_may_connect_costs_that_session(t):
    chance, peer = random.Random(SEED), t.home("peer")
    t.own_home.trust("peer", peer, "run=signed")
    files = sessions.certificate(t, peer)
    greeting = greeting_of(t)
    node = attack.ProgramNode(t, "127.0.0.1:0")
    for blob in [chance.randbytes(chance.randrange(12, 2000)) for _ in range(50)]:
        sessions.say(node.address, blob, files)
        sessions.say(node.address, greeting + blob, files)
    assert attack.wait_for_ends(node, 100) == {"refused-peers": 50, "dropped-links": 50, "links": 0}
    node.has_run_nothing()


@pytest.mark.release_only
def test_a_handshake_that_is_nearly_right_costs_its_own_connection(t):
    node = attack.ProgramNode(t, "127.0.0.1:0")
    relay = sessions.Relay(t, node.address)
    assert t.ifunc("send", t.build("hello.c"), relay.address, "--payload", "you", env=TCP).code == 0
    hello = bytes(relay.sessions[0]["up"])
    hello = hello[:5 + int.from_bytes(hello[3:5], "big")]
    before = node.stat("refused-peers") + node.stat("dropped-links")
    attack.say_all(node.address, list(messages.mutations(hello, 1000, SEED)))
    attack.wait_for_ends(node, before + 1000)
    assert node.stat("executed") == 1
    attack.answers_soon(t, node.address)
