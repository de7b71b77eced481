# SPDX-License-Identifier: Apache-2.0
"""What the attack tests share: strangers, talking to a node by hand, and what a process has open.

A stranger is a process with another user id, or in another network namespace. It is forked from the test, so that what
it does is an ordinary function of the test.
"""

import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import re
import resource
import signal
import socket
import struct
import threading
import time
import traceback

import pytest

import kit
from kit.client import Client

OTHER_USER = 61_002
KEPT_OUT = "only encrypted connections"  # in the refusal of who speaks plainly
ENDED = ("ended the connection before it greeted", "closed its socket without disconnecting")  # of who said too little
AT_ONCE = 3.0  # seconds for an answer that shall come at once, on a machine that has nothing else to do
PATIENCE = 60.0  # seconds for what comes in the end, however busy the machine is
CLONE_NEWNET = 0x40000000
LISTEN, UNCONNECTED = "0A", "07"


# ---- Strangers

def _enter(uid, namespace):
    if namespace is not None:
        with open(f"/run/netns/{namespace}") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
                pytest.skip(f"entering a network namespace: {os.strerror(ctypes.get_errno())}")
    if uid is not None:
        try:
            os.setgroups([])
            os.setresuid(uid, uid, uid)
        except OSError as error:
            pytest.skip(f"this process cannot become another user: {error}")


def _child(action, uid, namespace, result, stop):
    """Does `action`, writes what it returned as JSON, and ends when `stop` is closed."""
    kept = None
    try:
        _enter(uid, namespace)
        kept = action()  # sockets in it stay open until the end
        answer = {"result": kept if not isinstance(kept, Held) else kept.result}
    except pytest.skip.Exception as reason:
        answer = {"skip": str(reason)}
    except BaseException:
        answer = {"failed": traceback.format_exc()}
    with os.fdopen(result, "w") as out:
        json.dump(answer, out)
    os.read(stop, 1)
    del kept


class Held:
    """What an action returns that has opened something which shall stay open."""

    def __init__(self, opened, result=None):
        self.opened, self.result = opened, result


@contextlib.contextmanager
def stranger(action, *, uid=None, namespace=None, seconds=2 * PATIENCE):
    """While a process with this user id (in the same group), in this network namespace, does `action`, and then holds
    open what it opened. Gives what `action` returned."""
    if os.geteuid() != 0:
        pytest.skip("to be another user, or in another network, needs root")
    result, result_in = os.pipe()
    stop_out, stop = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(result)
            os.close(stop)
            _child(action, uid, namespace, result_in, stop_out)
        finally:
            os._exit(0)
    os.close(result_in)
    os.close(stop_out)
    timer = threading.Timer(seconds, lambda: os.kill(child, signal.SIGKILL))
    timer.start()
    try:
        with os.fdopen(result) as answers:
            text = answers.read()
        timer.cancel()
        assert text, f"a stranger did not end within {seconds} s"
        answer = json.loads(text)
        if "skip" in answer:
            pytest.skip(answer["skip"])
        assert "failed" not in answer, answer["failed"]
        yield answer["result"]
    finally:
        timer.cancel()
        os.close(stop)
        os.waitpid(child, 0)


def stranger_does(action, **who):
    with stranger(action, **who) as result:
        return result


def needs_ucx():
    if not (kit.BUILD / "lib/libthreechains_ucx.so").exists():
        pytest.skip("this build has no UCX")


# ---- Nodes

class ProgramNode(Client):
    """A node of a program: unlike `ifunc serve` it listens wherever it is told to, and tells its counters."""

    def __init__(self, t, listen, *settings, prefix=(), home=None):
        super().__init__(t, (home or t.own_home).env, f"listen={listen}", *settings, prefix=prefix)
        self.t, self.home = t, home or t.own_home
        self.address = self.must("address").split()[1]
        self.port = int(self.address.rsplit(":", 1)[1])
        self.must("serve")

    def stat(self, name):
        return int(self.must(f"stat {name}").split()[1])

    def numbers(self):
        return {name: self.stat(name) for name in ["refused-peers", "dropped-links", "links"]}

    def has_run_nothing(self):
        """And goes on serving those that share its key."""
        assert self.running(), f"the node ended: {self.err[-2000:]}"
        assert self.stat("executed") == 0, self.err
        answers_soon(self.t, self.address, env={**kit.TCP, **self.home.env})


def wait_for_ends(node, count):
    """Until so many peers were refused or lost. No link is no sign of it: perhaps the last peer was not even accepted. The
    node's numbers then."""
    def ended():
        numbers = node.numbers()
        return numbers if numbers["refused-peers"] + numbers["dropped-links"] >= count else None
    return kit.run_until(ended, f"{count} peers are refused or lost")


def acquainted(t, name, node_home):
    """A home whose owner knows that node's key, so that nothing is said about a first contact."""
    home = t.home(name)
    home.trust("node", node_home, "run=none")
    return home


def call(t, home, ifunc, node, *options):
    """`ifunc send`, by TCP, with the keys of that home."""
    return t.ifunc("send", ifunc, node.address, "--payload", "you", "--timeout", "20000", *options,
                   env={**kit.TCP, **home.env})


def says_one_line(result, pattern):
    """A command failed, and said why in one line."""
    lines = result.err.splitlines()
    assert result.code == 1 and len(lines) == 1 and re.search(pattern, lines[0]), result
    assert result.out == "", result

# ---- Talking to a node by hand

def host_and_port(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


def unix_name(address):
    """The abstract Unix socket by which processes of the same user reach the node at this address."""
    return f"\0threechains/{address}"


def hold_connections(address, count, message=b""):
    """Connects so often, says that each time, and does nothing more. Gives how many connections were made."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 100:
        pytest.skip(f"a process can have only {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 100), hard))
    peers = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            peers.append(dial(address))
            send(peers[-1], message)
    return Held(peers, len(peers))


def dial(address, seconds=PATIENCE):
    """A socket to `HOST:PORT` or, beginning with a zero byte, to a Unix socket."""
    if address.startswith("\0"):
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(seconds)
        made.connect(address)
        return made
    return socket.create_connection(host_and_port(address), seconds)


def send(to, message, descriptors=()):
    """All of it, as far as the node takes it: one that refuses does not read."""
    with contextlib.suppress(OSError):
        if descriptors:
            socket.send_fds(to, [message[:1]], descriptors)
        to.sendall(message[1:] if descriptors else message)


def end_writing(peer):
    """Says no more, so that a node that waits for the rest of a message gives up at once, and we need not guess how long it
    takes. It still can answer. An encrypted socket is cut off, without an alert."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(peer, socket.SHUT_WR)


def hear(peer, heard, until=None):
    """Adds to `heard` what comes until the other end closes or until these bytes have come."""
    end = time.monotonic() + PATIENCE
    while until is None or until not in heard:
        peer.settimeout(max(0.001, end - time.monotonic()))
        more = peer.recv(65536)
        if not more:
            return
        heard += more


def say(address, message, descriptors=(), until=None):
    """Says that and no more, and gives as text what the node answers until it closes; nothing when nobody is there. With
    `until`, the connection stays open until these bytes were answered."""
    heard = bytearray()
    with contextlib.suppress(OSError), dial(address) as to:
        send(to, message, descriptors)
        if until is None:
            end_writing(to)
        hear(to, heard, until)
    return heard.decode(errors="replace")


def say_all(address, messages, descriptors=(), at_once=64):
    """Says each message and no more on a connection of its own, some at a time. What the node answered to each until it
    closed: it has dealt with all of them."""
    answers, left = [], iter(messages)
    while group := list(itertools.islice(left, at_once)):
        peers = [dial(address) for _ in group]
        for peer, message in zip(peers, group):
            send(peer, message, descriptors)
            end_writing(peer)
        for peer in peers:
            heard = bytearray()
            with contextlib.suppress(ConnectionError), peer:
                hear(peer, heard)
            answers.append("" if is_cut_refusal(heard) else heard.decode(errors="replace"))
    return answers


def is_cut_refusal(heard):
    """Whether this is the beginning of a refusal. A node that closes a socket with bytes unread resets the connection, and a
    reset may take the rest of the refusal, with its reason, from its reader."""
    magic, _version, kind, _zero, size = struct.unpack("<4sBBHI", heard[:12].ljust(12, b"\0"))
    return len(heard) < 12 or (magic == b"TCN1" and kind == 2 and len(heard) < 12 + size)


# ---- What is to be seen of a process

def internet_sockets(pid):
    """Local addresses of the process's TCP sockets that listen, and of its UDP sockets that take from anybody."""
    inodes = set()
    for descriptor in os.scandir(f"/proc/{pid}/fd"):
        link = os.readlink(descriptor.path)
        if link.startswith("socket:["):
            inodes.add(link[len("socket:["):-1])
    found = []
    for table in ["tcp", "tcp6", "udp", "udp6"]:
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and fields[3] in (LISTEN, UNCONNECTED):
                host, port = fields[1].split(":")
                found.append((table, host, int(port, 16)))
    return found


def answers_soon(t, address, *, env=kit.TCP, prefix=()):
    """A client of the same user gets its call answered, and soon: a machine that is busy with other things has longer."""
    hello = t.build("hello.c")
    limit = AT_ONCE * kit.slowness()
    result = t.run(*prefix, kit.IFUNC, "send", hello, address, "--payload", "you", "--timeout", str(int(limit * 1000)),
                   env=env, seconds=limit + PATIENCE)
    limit = max(limit, AT_ONCE * kit.slowness())
    assert (result.code, result.out) == (0, "hello, you"), result
    assert result.seconds < limit, f"the answer took {result.seconds:.1f} s of {limit:.1f} s"


def logs_one_line(node, pattern):
    """The node has said so, once."""
    kit.run_until(lambda: lines_about(node.err, pattern), f"the node says {pattern}; it said {node.err}")
    assert len(lines_about(node.err, pattern)) == 1, node.err


def lines_about(text, pattern):
    return [line for line in text.splitlines() if re.search(pattern, line)]
