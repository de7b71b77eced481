# SPDX-License-Identifier: Apache-2.0
"""Nodes whose code runs in cells: what crashes there costs a call, and not the node."""

import os
import re
import time

import pytest

import kit
from kit.client import Client

CRASH, ECHO = (str(kit.BUILD / f"ifuncs/{name}.ifunc") for name in ("crash", "echo"))
SENTENCE = r"ifunc 'crash' \([0-9a-f]{12}\) ended its cell, which "

# How tests/ifuncs/crash.c crashes, and what its caller reads.
CRASHES = {
    "n": r"was ended by signal 11 .* at address 0x0, .*in crash_main\+0x[0-9a-f]+",
    "w": r"was ended by signal 11 .* at address 0x7000dead0000, .*in crash_main\+0x[0-9a-f]+",
    "r": r"was ended by signal 11 .*in crash_main\+0x[0-9a-f]+",
    "m": r"was ended by signal 11 .* at address 0x0, .*in crash_main\+0x[0-9a-f]+",
    "f": r"was ended by signal 11 .* at address 0x7000dead0000, .*in crash_main\+0x[0-9a-f]+",
}


def isolated(t, *options, **how):
    return t.serve("--isolate", "all", *options, **how)


def test_code_runs_in_a_cell_and_answers(t):
    node = isolated(t)
    for payload in ("x", "y" * 100_000):
        result = t.ifunc("send", ECHO, node.address, "--payload", payload, "--raw")
        assert result.code == 0 and result.out == payload, result.err


@pytest.mark.parametrize("how", CRASHES)
def test_a_crash_costs_its_call_and_not_the_node(t, how):
    node = isolated(t)
    result = t.ifunc("send", CRASH, node.address, "--payload", how)
    assert result.code != 0 and "crashed" in result.err, result
    assert re.search(SENTENCE + CRASHES[how], result.err), result
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


def test_a_library_that_is_not_allowed_is_not_opened_in_a_cell(t):
    bundle = t.build(kit.ROOT / "examples/09-cplusplus/parse.cc", "-q", "--", "-fexceptions")
    node = isolated(t)
    result = t.ifunc("send", bundle, node.address, "--payload", "12+30")
    assert result.code != 0 and "is not allowed on this node" in result.err, result


def test_an_endless_call_is_killed_at_the_execution_limit(t):
    node = isolated(t, "--execution-limit", "300")
    result = t.ifunc("send", CRASH, node.address, "--payload", "l")
    assert result.code != 0 and "more than 300 ms (execution-limit)" in result.err, result
    assert t.ifunc("send", CRASH, node.address, "--payload", "x").code == 0


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
    # A cell that is just being started has some descriptors more.
    deadline = time.monotonic() + 30
    while len(descriptors_of(node)) > before[0] + 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    after = (len(descriptors_of(node)), node.memory_kib())
    assert after[0] <= before[0] + 2 and after[1] <= before[1] * 1.1 + 1024, (before, after)


def descriptors_of(node):
    return os.listdir(f"/proc/{node.pid}/fd")
