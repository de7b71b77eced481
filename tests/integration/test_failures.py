# SPDX-License-Identifier: Apache-2.0
"""Targets that restart, die or stop while a long-living source talks to them."""

import itertools
import signal
import time

import pytest

import kit
from kit.client import Client
from kit import SHM, TCP


def connected(t, env, *options):
    node = t.serve(*options, env=env)
    client = Client(t, env)
    client.must(f"register {t.build('hello.c')}")
    client.must(f"connect {node.address}")
    assert client.ask("call 20000 one") == "ok hello, one"
    return node, client


def restart(t, env):
    node, client = connected(t, env)
    assert node.stop() == 0
    kit.run_until(lambda: client.ask("call 1000 two").startswith("error"), "the loss is noticed")
    again = t.serve("--listen", node.address, env=env)
    client.must("close")
    client.must(f"connect {again.address}")
    assert client.ask("call 20000 three") == "ok hello, three"


def test_a_target_restarted_between_two_sends_gets_the_code_again_by_shared_memory(t):
    restart(t, SHM)


def test_a_target_restarted_between_two_sends_gets_the_code_again_by_tcp(t):
    restart(t, TCP)


def kill_in_flight(t, env):
    node, client = connected(t, env)
    node.signal(signal.SIGSTOP)  # so that calls are in flight for certain
    accepted = int(client.ask("flood-prepare 10000 300000").split()[1])
    assert accepted > 0
    node.signal(signal.SIGKILL)
    done = client.ask("flood-wait").split()  # long before the deadline: a killed peer is known at once
    assert int(done[5]) == accepted, f"not all {accepted} calls ended with disconnected: {done}"
    assert client.ask("call 1000 x").startswith("error")


def kill_while_sending(t, env):
    for tries in itertools.count():
        node, client = connected(t, env)
        client.tell("flood-prepare 300000 5000")
        time.sleep(0.02 * 2**tries)
        node.signal(signal.SIGKILL)
        accepted = int(client.answer().split()[1])
        if accepted > 0:
            break
        assert tries < 8, "the source has not begun to send after 5 s"
    done = client.ask("flood-wait").split()
    ok, timeout, disconnected, other = map(int, done[3:7])
    assert ok + timeout + disconnected + other == accepted and other == 0, done


def test_calls_to_a_killed_target_fail_soon_by_shared_memory(t):
    kill_in_flight(t, SHM)


def test_calls_to_a_killed_target_fail_soon_by_tcp(t):
    kill_in_flight(t, TCP)


def test_a_target_killed_while_a_source_sends_loses_no_status_by_shared_memory(t):
    kill_while_sending(t, SHM)


def test_a_target_killed_while_a_source_sends_loses_no_status_by_tcp(t):
    kill_while_sending(t, TCP)


def stop_in_flight(t, env):
    node, client = connected(t, env)
    node.signal(signal.SIGSTOP)
    done = client.ask("flood 10000 1000").split()
    accepted, refused, ok, timeout, disconnected, other, latest_ms = map(int, done[1:8])
    assert accepted + refused == 10000 and accepted > 0, done
    assert ok == 0 and timeout + disconnected + other == accepted, done
    assert latest_ms < 500 * kit.slowness(), f"an answer came {latest_ms} ms after its deadline"
    node.signal(signal.SIGCONT)
    # What was accepted may still run; calls made now are answered again, on this link or a new one.
    if not client.ask("call 20000 back").startswith("ok"):
        client.ask("close")
        client.must(f"connect {node.address}")
    assert client.ask("call 20000 back") == "ok hello, back"
    assert node.stop() == 0


@pytest.mark.measured
def test_ten_thousand_calls_to_a_stopped_target_end_in_time_by_shared_memory(t):
    stop_in_flight(t, SHM)


@pytest.mark.measured
def test_ten_thousand_calls_to_a_stopped_target_end_in_time_by_tcp(t):
    stop_in_flight(t, TCP)


def test_connecting_to_a_stopped_target_ends_with_the_timeout(t):
    node = t.serve()
    node.signal(signal.SIGSTOP)
    result = t.ifunc("send", t.build("hello.c"), node.address, "--timeout", "1500")
    assert result.code == 1 and result.seconds < 10 * kit.slowness(), result


def test_a_target_that_stops_cleanly_is_known_at_once(t):
    node, client = connected(t, SHM)
    assert node.stop() == 0
    # Long before the deadline of the call.
    kit.run_until(lambda: client.ask("call 300000 x").startswith("error"), "the loss is noticed")


def test_a_target_that_is_told_to_stop_just_as_its_source_leaves_stops(t):
    hello = t.build("hello.c")
    for _ in range(40):  # what is told while the node looks at its sockets must not be lost
        node = t.serve(env=TCP)
        assert t.ifunc("send", hello, node.address, env=TCP).code == 0
        assert node.stop() == 0


def test_changed_code_under_the_same_name_runs_at_once(t):
    node, client = connected(t, SHM)
    source = t.write("changed/hello.c", "#include <threechains/ifunc.h>\n"
                     "void hello_main(void *p, size_t n, void *a) {\n"
                     "  (void)a; (void)p; (void)n; tc_reply(\"new\", 3); }\n")
    client.must(f"register {t.build(source)}")
    assert client.ask("call 20000 x") == "ok new"
