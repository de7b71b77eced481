# SPDX-License-Identifier: Apache-2.0
"""Handshakes that cost time: slow ones, halves of them, and very many."""

import collections
import contextlib
import socket
import threading
import time

import pytest

import attack
import kit
import sessions
from kit import SHM, TCP

MANY = 1000
SLOW = 64
FLOOD = 300  # handshakes, and calls meanwhile
HELD = 500  # connections of a flood that stay open
PENDING = 128  # connections of one host that have not greeted, at most
DEADLINE = 5.0  # for a handshake
LINES_A_SECOND = 20  # of refusals, at most, that a node logs


def first_flight(t):
    """What a real client says first."""
    node = attack.ProgramNode(t, "127.0.0.1:0")
    relay = sessions.Relay(t, node.address)
    assert t.ifunc("send", t.build("hello.c"), relay.address, "--payload", "you", env=TCP).code == 0
    node.end()
    said = bytes(relay.sessions[0]["up"])
    return said[:5 + int.from_bytes(said[3:5], "big")]


def halves(t):
    flight = first_flight(t)
    return {"a byte": flight[:1], "half of the first message": flight[:len(flight) // 2], "the first message": flight}


@pytest.mark.parametrize("what", ["a byte", "half of the first message", "the first message"],
                         ids=["a_byte", "half", "all_of_the_first"])
def test_a_call_is_answered_while_a_thousand_sockets_hold_half_of_a_handshake(t, what):
    half = halves(t)[what]
    peer = attack.acquainted(t, "peer", t.own_home)
    t.own_home.trust("peer", peer, "run=any")
    node = attack.ProgramNode(t, "127.0.0.1:0", "bitcode=off")  # without the memory of a compiler
    attack.answers_soon(t, node.address)
    start = time.monotonic()
    held = attack.hold_connections(node.address, MANY, half)
    attack.answers_soon(t, node.address, env=SHM)
    attack.answers_soon(t, node.address)
    attack.answers_soon(t, node.address, env={**TCP, **peer.env})
    assert held.result == MANY and node.stat("executed") == 4
    kit.run_until(lambda: node.stat("refused-peers") >= MANY, "all are given up")
    lines, most = len(attack.lines_about(node.err, " is refused: ")), LINES_A_SECOND * (time.monotonic() - start + 1)
    assert 0 < lines <= most, f"{lines} lines about {MANY} refusals: a flood fills the log"


@pytest.mark.release_only
@pytest.mark.measured
def test_a_thousand_halves_of_a_handshake_take_little_memory(t):
    half = halves(t)["half of the first message"]
    node = attack.ProgramNode(t, "127.0.0.1:0", "bitcode=off")  # without the memory of a compiler
    attack.answers_soon(t, node.address)
    memory = node.memory_kib()
    held = attack.hold_connections(node.address, MANY, half)
    attack.answers_soon(t, node.address)
    assert held.result == MANY
    grown = node.memory_kib() - memory
    assert grown < 16 * 1024, f"half-open handshakes took {grown} KiB"


def test_a_handshake_that_comes_byte_by_byte_ends_at_its_deadline(t):
    flight = first_flight(t)
    node = attack.ProgramNode(t, "127.0.0.1:0")
    start, peers = time.monotonic(), [attack.dial(node.address) for _ in range(SLOW // 2)]
    for byte in flight[:20]:
        for peer in peers:
            attack.send(peer, bytes([byte]))
        time.sleep(0.1)
    attack.answers_soon(t, node.address)
    kit.run_until(lambda: node.stat("refused-peers") == len(peers), "all are given up")
    assert time.monotonic() - start > DEADLINE - 1, "they were given up before their time, so this test says little"
    assert attack.lines_about(node.err, " is refused: .*within"), node.err
    assert node.stat("executed") == 1


class Flood:
    """Handshakes, one after the other, of peers that are refused at their end."""

    def __init__(self, t, address, home, threads=4):
        self.files, self.address = sessions.certificate(t, home), address
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.work) for _ in range(threads)]

    def work(self):
        made = sessions.context(self.files)
        while not self.stopped.is_set():
            try:
                with attack.dial(self.address) as plain, made.wrap_socket(plain) as to:
                    to.recv(1000)
            except OSError:
                pass

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


class Newcomers:
    """Connections without end, each of which says one thing and no more: `pace` of them a second, if the machine can."""

    def __init__(self, address, message, pace):
        self.to, self.message, self.pace = attack.host_and_port(address), message, pace
        self.held, self.made, self.stopped = collections.deque(maxlen=HELD), 0, threading.Event()
        self.thread = threading.Thread(target=self.work)

    def connect(self):
        one = socket.socket()
        one.setblocking(False)
        self.made += 1
        self.held.append(one)
        with contextlib.suppress(OSError):
            one.connect_ex(self.to)
            one.send(self.message)

    def work(self):
        start = time.monotonic()
        while not self.stopped.wait(0.002):
            while self.made < (time.monotonic() - start) * self.pace:
                self.connect()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()


@pytest.mark.release_only
def test_a_peer_that_is_far_away_at_the_address_of_a_flood_is_let_in(t):
    """Its handshake takes longer than the flood needs for as many connections as may be pending: 0.15 s and 0.13 s. So one
    try of four or so succeeds, and within its time the peer tries often enough. Twice the pace leaves one of twenty; on a
    machine that is busy the handshake takes longer, and so has the flood to."""
    flight, hello = first_flight(t), t.build("hello.c")
    peer = attack.acquainted(t, "peer", t.own_home)
    t.own_home.trust("peer", peer, "run=any")
    node = attack.ProgramNode(t, "127.0.0.1:0", "bitcode=off")
    relay = sessions.Relay(t, node.address, delay=0.05)
    with Newcomers(node.address, flight, 1000 / kit.slowness()) as flood:
        kit.run_until(lambda: flood.made > 2 * PENDING, "the flood has begun")
        for _ in range(3):
            result = attack.call(t, peer, hello, relay)
            assert (result.code, result.out) == (0, "hello, you"), result
    assert node.stat("refused-peers") > 0


@pytest.mark.release_only
def test_an_authenticated_peer_is_answered_during_a_flood_of_handshakes(t):
    """How much slower is measured by `ifunc bench`, on a machine that does nothing else. Here the flood shares the cores, and
    lasts until many handshakes were made and many calls answered, whatever time that takes."""
    peer, stranger = attack.acquainted(t, "peer", t.own_home), t.home("stranger")
    t.own_home.trust("peer", peer, "run=any")
    node = attack.ProgramNode(t, "127.0.0.1:0")
    client = attack.Client(t, {**TCP, **peer.env})
    client.must(f"register {t.build('hello.c')}")
    client.must(f"connect {node.address}")

    def call():
        assert client.ask("call 20000 you", attack.PATIENCE) == "ok hello, you"

    call()
    calls = handshakes = 0
    with Flood(t, node.address, stranger):
        end = time.monotonic() + attack.PATIENCE * kit.slowness()
        while handshakes < FLOOD or calls < FLOOD:
            assert time.monotonic() < end, f"{handshakes} handshakes and {calls} calls are not many"
            call()
            calls, handshakes = calls + 1, node.stat("refused-peers")
        attack.answers_soon(t, node.address)
    assert len(attack.lines_about(node.err, "is in no line of the keyring")) > 0, node.err
