# SPDX-License-Identifier: Apache-2.0
"""Ifuncs that travel, between processes that die, hang and come back."""

import signal
import struct
import time

import pytest

import kit

PATIENCE_MS = 60_000  # for a call that ends well, or with a reason, long before
both_ways = pytest.mark.parametrize("env", [pytest.param(kit.SHM, id="shm"), pytest.param(kit.TCP, id="tcp")])


class Ring:
    """Nodes that know each other, and clients of them."""

    def __init__(self, t, count, env, options=lambda id: ()):
        self.t, self.env, self.options = t, env, options
        self.addresses = kit.free_addresses(count)
        self.nodes = [self.serve(id) for id in range(count)]
        self.wander = t.build("wander.c")

    def serve(self, id):
        return self.t.serve_member(self.addresses, id, "--stats", "--log", "info", *self.options(id), env=self.env)

    def command(self, hops, timeout_ms):
        return [kit.IFUNC, "send", self.wander, self.addresses[0], "--payload", str(hops), "--raw", "--hops", "65000",
                "--timeout", str(timeout_ms)]

    def send(self, hops, timeout_ms=PATIENCE_MS):
        """A call that ends when it has."""
        return self.t.run(*self.command(hops, timeout_ms), env=self.env, seconds=2 * PATIENCE_MS / 1000)

    def start(self, hops):
        """A call that goes on while the test does."""
        return self.t.start(*self.command(hops, PATIENCE_MS), env=self.env)

    def executed(self, id):
        """Asks a node that is stopped for good."""
        self.nodes[id].stop()
        return self.nodes[id].stats["executed"]


@both_ways
def test_a_call_goes_round_thousands_of_times_and_its_answer_comes_straight_home(t, env):
    ring = Ring(t, 3, env)
    result = ring.send(5000)
    assert result.code == 0 and result.out == "2", result
    assert [ring.executed(id) for id in range(3)] == [1667, 1667, 1667]


@both_ways
def test_a_call_at_a_killed_node_fails_by_its_name_long_before_the_deadline(t, env):
    ring = Ring(t, 4, env)
    assert ring.send(8).code == 0
    # A node that stands still holds the call; then it is killed.
    ring.nodes[2].signal(signal.SIGSTOP)
    call = ring.start(8)
    time.sleep(0.5)
    assert call.running(), call.err
    ring.nodes[2].kill()
    assert call.wait(PATIENCE_MS / 2000) != 0
    assert "node 2 (" in call.err and "died while the call was there" in call.err, call.err


@both_ways
def test_a_node_killed_in_the_middle_of_a_long_chase_ends_it_with_its_name(t, env):
    ring = Ring(t, 4, env)
    assert ring.send(8).code == 0
    call = ring.start(64000)
    time.sleep(0.05)
    ring.nodes[3].kill()
    assert call.wait(PATIENCE_MS / 2000) != 0 or call.out == "0", call.err
    if call.out != "0":  # else it was quicker than we
        said = call.err
        assert "node 3" in said or ring.addresses[3] in said or "cannot go on" in said, said


@both_ways
def test_a_node_that_hangs_costs_a_call_its_deadline_and_then_serves_the_next(t, env):
    ring = Ring(t, 3, env)
    assert ring.send(6).code == 0
    ring.nodes[1].signal(signal.SIGSTOP)
    result = ring.send(6, timeout_ms=1000)
    assert result.code != 0 and "deadline" in result.err, result
    assert 0.9 < result.seconds < 10 * kit.slowness(), result
    ring.nodes[1].signal(signal.SIGCONT)
    assert ring.send(6).out == "0"


@both_ways
def test_a_node_that_was_killed_and_started_again_gets_the_code_again(t, env):
    ring = Ring(t, 3, env)
    assert ring.send(6).code == 0
    ring.nodes[1].kill()
    ring.nodes[1] = ring.serve(1)
    result = ring.send(6)
    assert result.code == 0 and result.out == "0", result
    assert ring.executed(1) == 2


@both_ways
def test_a_chase_leaves_its_result_where_it_says_by_an_ifunc_that_no_node_has_seen(t, env):
    servers, entries = 3, 4
    table = [(i + 5) % (servers * entries) for i in range(servers * entries)]  # one cycle through all of it
    shards = [t.write(f"shard{i}", struct.pack(f"<{entries}Q", *table[i * entries:(i + 1) * entries]))
              for i in range(servers)]
    ring = Ring(t, servers + 1, env, lambda id: ("--data", f"chase-table={shards[id]}:ro") if id < servers
                else ("--scratch", "chase-result=16"))
    end = 7
    for _ in range(100):
        end = table[end]
    chase = struct.pack("<QII", 7, 100, servers)
    peek = t.build("peek.c")
    for count in range(1, 4):
        result = t.ifunc("send", str(kit.BUILD / "ifuncs/chaser.ifunc"), ring.addresses[1], "--hex", chase.hex(),
                         "--hops", "200", env=env)
        assert result.code == 0 and result.out == "", result

        def left():
            shown = t.ifunc("send", peek, ring.addresses[servers], "--payload", "chase-result", "--hex-out", env=env)
            return struct.unpack("<QQ", bytes.fromhex(shown.out.strip()))
        kit.run_until(lambda: left() == (end, count), f"result {count}")


def test_a_chase_that_meets_an_address_of_no_node_says_so_wherever_it_is(t):
    entries = 4
    no_node, also_node_1_in_32_bits = 2 * entries, (1 << 32 | 1) * entries
    shards = [t.write("shard0", struct.pack(f"<{entries}Q", 5, no_node, also_node_1_in_32_bits, 1)),
              t.write("shard1", struct.pack(f"<{entries}Q", 2, 3, 0, 0))]
    ring = Ring(t, 2, kit.TCP, lambda id: ("--data", f"chase-table={shards[id]}:ro"))
    for start in (0, 4):  # 0 to 5 to 3 to 1 to no node; 4 to 2 to one that only seems to be there
        chase = struct.pack("<QII", start, 100, 2**32 - 1)
        result = t.ifunc("send", str(kit.BUILD / "ifuncs/chaser.ifunc"), ring.addresses[0], "--hex", chase.hex(),
                         env=kit.TCP)
        assert result.code != 0 and "the address lies behind the table's end" in result.err, result


def test_a_loop_ends_at_the_hop_limit_and_the_sender_hears_which_node_ended_it(t):
    ring = Ring(t, 3, kit.TCP)
    result = t.ifunc("send", ring.wander, ring.addresses[0], "--payload", "1000", "--hops", "10", env=kit.TCP)
    assert result.code != 0 and "node 1" in result.err and "cannot go on" in result.err, result
