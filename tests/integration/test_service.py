# SPDX-License-Identifier: Apache-2.0
"""`ifunc serve` under a supervisor: what it tells systemd."""

import os
import select
import signal
import socket
import time

import pytest

import kit


class Manager:
    """What systemd is to a service: a socket for its messages."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        name = "@" + address[1:].decode() if isinstance(address, bytes) else address
        self.env = {"NOTIFY_SOCKET": name}

    def next(self):
        """The next message, as a dictionary."""
        assert select.select([self.socket], [], [], 60 * kit.slowness())[0], "the node says nothing"
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().split("\n"))

    def says_nothing(self):
        return not select.select([self.socket], [], [], 0)[0]


@pytest.fixture(params=["path", "abstract"])
def manager(request, t):
    address = t.path("notify") if request.param == "path" else b"\0threechains-test-" + os.urandom(8).hex().encode()
    made = Manager(address)
    t.cleanups.append(made.socket.close)
    return made


def test_a_supervisor_is_told_when_peers_can_connect_and_when_the_node_stops(t, manager):
    node = t.serve(env=manager.env)
    assert manager.next() == {"READY": "1", "STATUS": f"serves at {node.address}"}
    assert node.stop() == 0
    assert manager.next() == {"STOPPING": "1", "STATUS": "stops, told by SIGTERM"}
    assert manager.says_nothing()


def test_a_supervisor_is_told_of_a_reload_by_the_time_at_which_it_began(t, manager):
    node = t.serve(env=manager.env)
    manager.next()
    for content in ([], ["this is no line"]):
        t.own_home.write_lines(*content)
        before = time.monotonic_ns() // 1000
        node.signal(signal.SIGHUP)
        reloading = manager.next()
        assert reloading.keys() == {"RELOADING", "MONOTONIC_USEC"} and reloading["RELOADING"] == "1", reloading
        assert before <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
        assert manager.next() == {"READY": "1"}, "also when the keyring stays as it was"
    assert "the keyring stays as it was" in node.err
    assert node.stop() == 0


@pytest.mark.parametrize("name", ["nowhere", "relative", "empty", "too-long"])
def test_a_supervisor_that_cannot_be_told_costs_nothing(t, name):
    where = {"nowhere": t.path("nowhere"), "relative": "notify", "empty": "", "too-long": "/" + "x" * 200}[name]
    node = t.serve(env={"NOTIFY_SOCKET": where})
    assert node.stop() == 0, node.err
