# SPDX-License-Identifier: Apache-2.0
"""`ifunc serve` under a supervisor: what it tells systemd."""

import os
import pathlib
import re
import select
import shutil
import signal
import socket
import sys
import time

import pytest

import kit
from kit import system_calls

CRASH, ECHO = (str(kit.BUILD / f"ifuncs/{name}.ifunc") for name in ("crash", "echo"))


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


# ---- The unit

UNIT = kit.BUILD / "threechains.service"
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze") or not UNIT.exists(), reason="no systemd, or no unit")


def analyze(*arguments):
    return kit.run("systemd-analyze", *map(str, arguments))


@needs_systemd
def test_the_unit_is_one_without_mistakes_and_exposes_little(t):
    # Where the program is, which need not be installed here.
    text = re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={kit.IFUNC}", UNIT.read_text())
    unit = t.write("threechains.service", text)
    checked = analyze("verify", unit)
    assert checked.code == 0 and "threechains.service" not in checked.err, checked
    # In tenths; systemd calls what is below 2.0 "OK" or better. docs/service.md says the figure.
    assert analyze("security", "--offline=true", "--threshold=15", unit).code == 0, analyze("security", "--offline=true", unit)


@needs_systemd
@pytest.mark.release_only  # sanitizers make system calls of their own
@pytest.mark.skipif(not system_calls.can_be_used(), reason="needs the numbers of x86-64's system calls")
@pytest.mark.parametrize("options", [["--no-objects"], ["--isolate", "all"]], ids=["compiled", "in-a-cell"])
def test_a_node_needs_no_other_system_calls_than_the_unit_allows(t, options):
    notify = Manager(t.path("notify"))
    prefix = [sys.executable, system_calls.__file__, str(UNIT)]
    node = t.serve("--cache-dir", t.path("cache"), *options, prefix=prefix, env={**notify.env, **kit.TCP})
    assert notify.next()["READY"] == "1"
    result = t.ifunc("send", ECHO, node.address, "--payload", "x", "--raw", env=kit.TCP)
    assert (result.code, result.out) == (0, "x"), (result, node.err)
    if "--isolate" in options:
        assert "less strict" not in node.err, node.err
        crashed = t.ifunc("send", CRASH, node.address, "--payload", "n", env=kit.TCP)
        assert crashed.code != 0 and "ended its cell" in crashed.err, crashed
    node.signal(signal.SIGHUP)
    assert notify.next()["RELOADING"] == "1" and notify.next()["READY"] == "1"
    assert node.stop() == 0, node.err
