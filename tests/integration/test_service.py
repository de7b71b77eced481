# SPDX-License-Identifier: Apache-2.0
"""`ifunc serve` under a supervisor: what it tells systemd."""

import json
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


# ---- --supervise

class Supervised:
    """A node with a supervisor, at an address of its own."""

    def __init__(self, t, *options):
        self.t, self.address = t, kit.free_addresses(1)[0]
        self.process = t.serve("--supervise", "--listen", self.address, "--name", "server", *options)

    def node(self):
        """The process number of the node itself."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def other_than(self, before):
        return kit.run_until(lambda: self.node() not in (None, before) and self.node(), "there is another node")

    def answers(self):
        result = self.t.ifunc("send", ECHO, self.address, "--payload", "x", "--raw", "--timeout", "20000")
        assert (result.code, result.out) == (0, "x"), result

    def starts(self):
        return self.process.out.count(f"ready {self.address}\n")


def test_a_node_that_is_killed_is_started_again_after_pauses_that_grow(t):
    supervised = Supervised(t)
    for times, pause in enumerate((100, 200, 400), start=1):
        node = supervised.node()
        os.kill(node, signal.SIGKILL)
        supervised.other_than(node)
        kit.run_until(lambda: supervised.starts() == times + 1, "it is ready again")
        words = rf"server error: ifunc serve --supervise: the node was killed by signal 9 .*again in {pause} ms; its last words: none"
        assert re.search(words, supervised.process.err), supervised.process.err
    supervised.answers()
    assert supervised.process.stop() == 0, supervised.process.err
    assert "stops, told by SIGTERM" in supervised.process.err


@pytest.mark.release_only  # a sanitizer has last words of its own
def test_a_supervisor_says_which_ifunc_its_node_died_of(t):
    supervised = Supervised(t)
    assert t.ifunc("send", CRASH, supervised.address, "--payload", "n").code != 0
    kit.run_until(lambda: supervised.starts() == 2, "it is ready again")
    said = supervised.process.err
    assert re.search(r"the node was killed by signal 11 .*its last words: .* ended while it ran ifunc 'crash'", said), said
    supervised.answers()
    assert supervised.process.stop() == 0


def test_signals_reach_the_node_of_a_supervisor(t):
    supervised = Supervised(t)
    node = supervised.node()
    supervised.process.signal(signal.SIGHUP)
    kit.run_until(lambda: "ifunc serve: reads its keyring again" in supervised.process.err, "it is told to read its keyring")
    assert supervised.node() == node
    supervised.process.signal(signal.SIGINT)
    assert supervised.process.wait() == 0
    assert "stops, told by SIGINT" in supervised.process.err
    assert not os.path.exists(f"/proc/{node}")


def test_a_node_whose_configuration_is_wrong_is_not_started_again(t):
    config = t.write("node.conf", "ring-bites = \"4K\"\n")
    result = t.ifunc("serve", "--supervise", "--config", config)
    assert result.code == 78 and "there is no option 'ring-bites'" in result.err and "again" not in result.err, result


def test_a_supervisor_has_the_log_that_the_file_of_options_asks_for(t):
    supervised = Supervised(t, "--config", t.write("node.conf", "log-format = \"json\"\n"))
    os.kill(supervised.node(), signal.SIGKILL)
    kit.run_until(lambda: supervised.starts() == 2, "it is ready again")
    said = [json.loads(line) for line in supervised.process.err.splitlines()]
    assert [line["level"] for line in said] == ["error"] and said[0]["node"] == "server", said
    assert supervised.process.stop() == 0


def test_a_node_that_cannot_start_is_tried_again_until_the_supervisor_is_told_to_stop(t):
    taken = t.serve().address
    process = t.start(kit.IFUNC, "serve", "--supervise", "--listen", taken)
    kit.run_until(lambda: "is started again in 400 ms" in process.err, "it is tried again")
    assert re.search(r"the node ended with exit code 1 and is started again in 100 ms; its last words: ifunc serve: ", process.err)
    process.signal(signal.SIGTERM)
    assert process.wait(10) in (0, 128 + signal.SIGTERM)


def test_a_node_ends_with_its_supervisor(t):
    supervised = Supervised(t)
    node = supervised.node()
    supervised.process.signal(signal.SIGKILL)
    supervised.process.wait()
    kit.run_until(lambda: not os.path.exists(f"/proc/{node}"), "the node is gone")


def test_a_supervisor_whose_log_nobody_reads_still_supervises(t):
    log = t.path("log")
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    address = kit.free_addresses(1)[0]
    process = t.serve("--supervise", "--listen", address, prefix=["sh", "-c", 'exec "$@" 2>"$0"', log])
    os.close(reader)
    children = lambda: pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    before = children()
    os.kill(int(before[0]), signal.SIGKILL)
    kit.run_until(lambda: process.out.count("ready ") == 2 and children() != before, "it is started again")
    assert process.stop() == 0
