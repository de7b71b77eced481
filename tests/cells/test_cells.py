# SPDX-License-Identifier: Apache-2.0
"""Nodes whose code runs in cells: what crashes there costs a call, and not the node."""

import contextlib
import os
import pathlib
import re
import signal
import threading
import time

import pytest

import kit
from kit.client import Client

CRASH, ECHO = (str(kit.BUILD / f"ifuncs/{name}.ifunc") for name in ("crash", "echo"))


def sentence(ifunc):
    """What a caller reads first: status, node, ifunc, content id."""
    return rf"crashed: node [^']+: ifunc '{ifunc}' \([0-9a-f]{{12}}\) ended its cell, which "


# How tests/ifuncs/crash.c crashes, and what its caller reads.
CRASHES = {
    "n": r"was ended by signal 11 .* at address 0x0, .*in crash_main\+0x[0-9a-f]+",
    "w": r"was ended by signal 11 .* at address 0x7000dead0000, .*in crash_main\+0x[0-9a-f]+",
    "r": r"was ended by signal 11 .*in crash_main\+0x[0-9a-f]+",
    "m": r"was ended by signal 11 .* at address 0x0, .*in crash_main\+0x[0-9a-f]+",
    "f": r"was ended by signal 11 .* at address 0x7000dead0000, .*in crash_main\+0x[0-9a-f]+",
}

# What tests/ifuncs/mischief.c tries, and what ends its cell then. {node} is the node's process, its parent.
MISCHIEF = {
    "leave": r"has ended itself with exit code 3",
    "raise": r"was ended by signal 6 \(Aborted\)",
    "fork": r"was ended by signal 31 .*: its code called clone\(\)",
    "open": r"was ended by signal 31 .*: its code called openat\(\)",
    "socket": r"was ended by signal 31 .*: its code called socket\(\)",
    "ptrace {node}": r"was ended by signal 31 .*: its code called ptrace\(\)",
    "kill {node}": r"was ended by signal 31 .*: its code called kill\(\)",
    "write code": r"was ended by signal 11 .* at address 0x[1-9a-f][0-9a-f]*, in code at 0x[0-9a-f]+, in mischief_main",
}


def isolated(t, *options, **how):
    return t.serve("--isolate", "all", *options, **how)


def mischievous(t, *options, **how):
    return isolated(t, "--allow-lib", "libc.so.6", *options, **how)


def caller(t, ifunc, node, env={}, *settings):
    client = Client(t, env, *settings)
    client.must(f"register {ifunc}")
    client.must(f"connect {node.address}")
    return client


@contextlib.contextmanager
def another_client_that_loses_nothing(t, node):
    """Calls all the while on a connection of its own, and each call is answered well. Gives a function that waits
    for its next answers."""
    client = caller(t, ECHO, node)
    answers, stop = [], threading.Event()

    def call_on():
        while not stop.is_set():
            answers.append(client.ask(f"call 100000 {len(answers)}", seconds=150))

    thread = threading.Thread(target=call_on, daemon=True)
    thread.start()

    def next_answers():
        before = len(answers)
        kit.run_until(lambda: len(answers) >= before + 3 or not thread.is_alive(), "the other client is answered")
        assert thread.is_alive(), answers[-3:]

    try:
        next_answers()
        yield next_answers
        next_answers()
    finally:
        stop.set()
        thread.join()
    assert answers == [f"ok {number}" for number in range(len(answers))]


def test_code_runs_in_a_cell_and_answers(t):
    node = isolated(t)
    for payload in ("x", "y" * 100_000):
        result = t.ifunc("send", ECHO, node.address, "--payload", payload, "--raw")
        assert result.code == 0 and result.out == payload, result.err


# The ring between a node and its cell has 128 KiB.
@pytest.mark.parametrize("size", [130_000, 200_000, 1_000_000, 4_000_000, 16 << 20])
def test_payloads_and_answers_of_any_size_pass(t, size):
    node = isolated(t)
    payload = os.urandom(size // 2).hex()
    result = t.ifunc("send", ECHO, node.address, "--payload-file", t.write("payload", payload), "--raw", "--timeout", "60000")
    assert result.code == 0 and result.out == payload, result.err


@pytest.mark.parametrize("how", CRASHES)
def test_a_crash_costs_its_call_and_not_the_node(t, how):
    node = isolated(t)
    result = t.ifunc("send", CRASH, node.address, "--payload", how)
    assert result.code != 0 and "crashed" in result.err, result
    assert re.search(sentence("crash") + CRASHES[how], result.err), result
    again = t.ifunc("send", CRASH, node.address, "--payload", "x", "--raw")
    assert again.code == 0 and again.out == "x", again
    assert node.running()


def test_exceptions_of_cplusplus_pass_and_libraries_are_opened_for_the_first_code_that_uses_them(t):
    bundle = t.build(kit.ROOT / "examples/09-cplusplus/parse.cc", "-q", "--", "-fexceptions")
    node = isolated(t, "--allow-lib", "*")
    for _ in range(2):
        assert t.ifunc("send", ECHO, node.address, "--payload", "x", "--raw").out == "x"
        assert t.ifunc("send", bundle, node.address, "--payload", "12+30", "--raw").out == "42"
        for payload, words in (("12+x", "failed with code 1: 'x' is no digit"), ("", "was thrown and not caught")):
            result = t.ifunc("send", bundle, node.address, "--payload", payload)
            assert result.code != 0 and words in result.err, result


def test_code_uses_the_version_of_a_library_that_was_sent_last_also_in_the_cell_that_takes_over(t):
    example = kit.ROOT / "examples/10-rebind"
    old, new = (t.build(example / f"{name}.c", "--library", "--name", "hash", "-q")
                for name in ("fnv1a", "xxh64"))
    digest = t.build(example / "digest.c", "--against", old, "-q")
    node = isolated(t, "--allow-export", "hash", "--allow-export", "hash_name")

    def hashed_by():
        result = t.ifunc("send", digest, node.address, "--payload", "abc", "--hex-out")
        assert result.code == 0, result
        return bytes.fromhex(result.out)[:5].decode()

    for library, name in ((old, "fnv1a"), (new, "xxh64")):
        assert t.ifunc("send", library, node.address).code == 0
        assert [hashed_by(), hashed_by()] == [name, name]
        assert "ended its cell" in t.ifunc("send", CRASH, node.address, "--payload", "n").err
        assert hashed_by() == name


def test_a_library_that_is_not_allowed_is_not_opened_in_a_cell(t):
    bundle = t.build(kit.ROOT / "examples/09-cplusplus/parse.cc", "-q", "--", "-fexceptions")
    node = isolated(t)
    result = t.ifunc("send", bundle, node.address, "--payload", "12+30")
    assert result.code != 0 and "is not allowed on this node" in result.err, result


@pytest.mark.parametrize("what", MISCHIEF, ids=[what.split()[0] for what in MISCHIEF])
def test_what_code_may_not_do_costs_its_call_alone_and_its_caller_reads_what_it_was(t, what):
    node = mischievous(t)
    client = caller(t, t.build("mischief.c"), node)
    with another_client_that_loses_nothing(t, node) as next_answers:
        for _ in range(3):
            answer = client.ask(f"call 100000 {what.format(node=node.pid)}", seconds=150)
            assert re.fullmatch("error " + sentence("mischief") + MISCHIEF[what] + ".*", answer), answer
            next_answers()
        assert client.ask("call 100000 x", seconds=150) == "ok x"
    assert node.running()


# What is only refused, or was made a failure when the ifunc was built, costs no cell.
@pytest.mark.parametrize("what, words", [
    ("get memory", "code 12: there is no memory"),
    ("use memory", "code 12: there is no more memory"),
    ("exit", r"code -2: exit\(\) at mischief\.c:\d+"),
    ("abort", r"code -2: abort\(\) at mischief\.c:\d+"),
], ids=["get", "use", "exit", "abort"])
def test_what_code_can_be_refused_is_a_failure_of_its_call_and_its_cell_goes_on(t, what, words):
    node = mischievous(t, "--cell-memory", "64M", "--stats")
    client = caller(t, t.build("mischief.c"), node)
    with another_client_that_loses_nothing(t, node) as next_answers:
        for _ in range(3):
            answer = client.ask(f"call 100000 {what}", seconds=150)
            assert re.fullmatch(f"error ifunc failed: node [^']+: ifunc 'mischief' failed with {words}", answer), answer
            next_answers()
    assert node.stop() == 0 and node.stats["cell-deaths"] == 0, node.stats


def test_data_that_the_node_gives_to_read_is_not_written(t):
    text = t.write("text", "as it was")
    node = mischievous(t, "--data", f"text={text}:ro")
    client = caller(t, t.build("mischief.c"), node)
    with another_client_that_loses_nothing(t, node):
        assert_that_the_write_costs_its_call(client)
    assert pathlib.Path(text).read_text() == "as it was"


def test_data_that_its_caller_may_not_write_is_not_written(t):
    text = t.write("text", "as it was")
    ana, bob, home = t.home("ana"), t.home("bob"), t.home("node")
    home.trust("ana", ana, "run=any", "read=*", "write=none")
    home.trust("bob", bob, "run=any", "read=*", "write=*")
    for caller_home in (ana, bob):
        caller_home.trust("node", home, "run=none")
    node = mischievous(t, "--listen", "127.0.0.1:0", "--data", f"text={text}", env=home.env)
    mischief = t.build("mischief.c")
    assert_that_the_write_costs_its_call(caller(t, mischief, node, {**kit.TCP, **ana.env}))
    assert pathlib.Path(text).read_text() == "as it was"
    assert caller(t, mischief, node, {**kit.TCP, **bob.env}).ask("call 100000 write data", seconds=150) == "ok data"
    assert pathlib.Path(text).read_text() == "Xs it was"


def assert_that_the_write_costs_its_call(client):
    answer = client.ask("call 100000 write data", seconds=150)
    crash = sentence("mischief") + r"was ended by signal 11 .* at address 0x[1-9a-f]\w+, .*in mischief_main\+0x\w+"
    assert re.fullmatch("error " + crash, answer), answer
    assert client.ask("call 100000 x", seconds=150) == "ok x"


# The tuner's thread asks a cell for addresses.
@pytest.mark.parametrize("bundle", [ECHO, CRASH], ids=["echo", "crash"])
def test_a_node_lives_when_its_cells_are_killed_while_code_for_them_is_compiled(t, bundle):
    node = isolated(t)
    for pause in (0, 0.005, 0.02, 0.05, 0.1):
        deadline = time.monotonic() + 60
        while True:  # a call may begin in a cell whose end is not known yet
            result = t.ifunc("send", bundle, node.address, "--payload", "x", "--raw")
            assert node.running() and time.monotonic() < deadline, result
            if result.code == 0:
                break
        time.sleep(pause)
        for cell in children_of(node):
            os.kill(cell, signal.SIGKILL)
    assert node.running()


def test_an_endless_call_is_killed_at_the_execution_limit(t):
    node = isolated(t, "--execution-limit", "300")
    result = t.ifunc("send", CRASH, node.address, "--payload", "l")
    assert result.code != 0 and "more than 300 ms (execution-limit)" in result.err, result
    assert t.ifunc("send", CRASH, node.address, "--payload", "x").code == 0


def test_beside_a_call_that_never_ends_others_are_served_and_the_node_can_be_stopped(t):
    node = isolated(t, "--execution-limit", "0", "--drain", "500")
    stuck = caller(t, CRASH, node)
    stuck.tell("call 600000 l")
    with another_client_that_loses_nothing(t, node):
        kit.run_until(lambda: max(map(cpu_seconds_of, children_of(node))) > 0.3, "the call runs")
    node.signal(signal.SIGTERM)
    assert node.wait(seconds=120) is not None


def a_client_whose_code_needs_a_signature(t):
    """Its caller, as a function of a node; and the home of that node."""
    ana, home = t.home("ana"), t.home("node")
    home.trust("ana", ana, "run=signed", "read=*", "write=*")
    ana.trust("node", home, "run=none")
    file = t.write("crash.ifunc", pathlib.Path(CRASH).read_bytes())
    assert t.ifunc("sign", file, "--key", ana.key_file(), env=ana.env).code == 0
    return (lambda node: caller(t, file, node, {**kit.TCP, **ana.env})), home


def test_a_service_runs_the_code_of_those_who_may_not_run_any_code_in_cells_unless_it_is_told_otherwise(t):
    call, home = a_client_whose_code_needs_a_signature(t)
    node = t.serve("--listen", "127.0.0.1:0", env=home.env)
    client = call(node)
    assert "ended its cell" in client.ask("call 20000 n")
    assert client.ask("call 20000 x") == "ok x"
    other = t.serve("--listen", "127.0.0.1:0", "--isolate", "none", env=home.env)
    assert call(other).ask("call 20000 x") == "ok x"
    assert not children_of(other)


def test_a_service_that_cannot_have_cells_says_so_and_runs_that_code_itself(t):
    call, home = a_client_whose_code_needs_a_signature(t)
    node = t.serve("--listen", "127.0.0.1:0", "--cell", "/no/such/program", env=home.env)
    assert call(node).ask("call 20000 x") == "ok x"
    node.stop()
    assert "there can be no cells, so code of those who may not run any code runs in this process" in node.err
    assert "/no/such/program" in node.err


def test_200_crashes_in_a_row_leave_the_node_as_it_was(t):
    node = isolated(t)
    client = Client(t, {})
    client.must(f"register {CRASH}")
    client.must(f"connect {node.address}")
    assert client.ask("call 20000 x") == "ok x"
    for _ in range(60):  # until everything has been used once
        assert "ended its cell" in client.ask("call 20000 n")
    before = (len(descriptors_of(node)), node.memory_kib())
    for _ in range(140):
        assert "ended its cell" in client.ask("call 20000 n")
    assert client.ask("call 20000 x") == "ok x"
    # One descriptor lost with each crash would be 140 more. A cell has some, and is between two lives or is not.
    deadline = time.monotonic() + 30
    while len(descriptors_of(node)) > before[0] + 16 and time.monotonic() < deadline:
        time.sleep(0.05)
    after = (len(descriptors_of(node)), node.memory_kib())
    assert after[0] <= before[0] + 16 and after[1] <= before[1] * 1.1 + 1024, (before, after)


def descriptors_of(node):
    return os.listdir(f"/proc/{node.pid}/fd")


def cpu_seconds_of(pid):
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def children_of(node):
    return [int(pid) for task in pathlib.Path(f"/proc/{node.pid}/task").iterdir()
            for pid in (task / "children").read_text().split()]
