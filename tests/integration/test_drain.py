# SPDX-License-Identifier: Apache-2.0
"""`ifunc serve` between SIGTERM and its end: it refuses what comes, and what came before goes on."""

import json
import pathlib
import signal
import struct

import pytest

import kit

ECHO, LINGER = (str(kit.BUILD / f"ifuncs/{name}.ifunc") for name in ("echo", "linger"))
REFUSED = "is draining: it ends, and takes no more calls"
ELSEWHERE = {"thread": ["--threads", "4"], "cell": ["--isolate", "all"]}


class Lingering:
    """A node, and clients whose calls last until the test opens a gate."""

    def __init__(self, t, where, *options):
        self.t = t
        self.gate = pathlib.Path(t.write("gate", struct.pack("II", 0, 0)))
        self.node = t.serve("--name", "server", "--data", f"gate={self.gate}", *ELSEWHERE[where], *options)
        self.clients = []

    def start_one(self):
        self.clients.append(self.t.start(kit.IFUNC, "send", LINGER, self.node.address, "--payload", "x", "--timeout", "600000"))

    def start_one_that_runs(self):
        self.start_one()
        kit.run_until(lambda: self.inside() == len(self.clients), "the ifunc runs")

    def inside(self):
        return struct.unpack("II", self.gate.read_bytes())[0]

    def open_gate(self):
        with open(self.gate, "r+b") as file:
            file.seek(4)
            file.write(struct.pack("I", 1))

    def begin_to_drain(self):
        self.node.signal(signal.SIGTERM)
        kit.run_until(lambda: self.t.ifunc("ping", "-c", "1", self.node.address).code == 1, "it says that it drains")


@pytest.fixture(params=ELSEWHERE)
def where(request):
    return request.param


def test_a_call_that_runs_elsewhere_ends_and_new_ones_are_refused_meanwhile(t, where):
    there = Lingering(t, where, "--drain", "600000")
    there.start_one_that_runs()
    there.begin_to_drain()
    refused = t.ifunc("send", ECHO, there.node.address, "--payload", "x")
    assert refused.code != 0 and f"server {REFUSED}" in refused.err, refused
    stat = t.ifunc("stat", "--json", there.node.address)
    assert stat.code == 1 and json.loads(stat.out)["draining"] is True, stat
    assert there.node.running()
    there.open_gate()
    assert there.clients[0].wait() == 0, there.clients[0].err
    assert there.node.wait() == 0, there.node.err


def test_a_call_in_a_cell_is_told_when_the_time_is_over(t):
    there = Lingering(t, "cell", "--drain", "300")
    there.start_one_that_runs()
    there.node.signal(signal.SIGTERM)
    assert there.node.wait() == 128 + signal.SIGTERM, there.node.err
    assert "after 300 ms (--drain) the node stops: 1 call runs or waits here still" in there.node.err
    assert there.clients[0].wait() != 0 and "this node ends" in there.clients[0].err, there.clients[0].err


def test_a_node_is_asked_while_a_call_runs_in_a_cell_and_another_one_waits(t):
    there = Lingering(t, "cell", "--cells", "1")
    there.start_one_that_runs()
    there.start_one()
    # The second one has come when its client has a link besides that of who asks.
    def told():
        stat = t.ifunc("stat", "--json", there.node.address)
        assert stat.code == 0, stat
        return json.loads(stat.out)

    kit.run_until(lambda: told()["statistics"]["links"] >= 3, "both clients are there")
    asked = told()
    assert (asked["running"], asked["draining"], asked["statistics"]["executed"]) == ("linger", False, 0), asked
    assert t.ifunc("ping", "-c", "3", "-i", "0", there.node.address).code == 0
    there.open_gate()
    assert [client.wait() for client in there.clients] == [0, 0], [client.err for client in there.clients]
    assert told()["running"] is None
