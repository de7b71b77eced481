# SPDX-License-Identifier: Apache-2.0
"""What a node says when an ifunc ends its process, and who hears of it."""

import json
import re

import pytest

import kit

# How tests/ifuncs/crash.c crashes, and what is said of it.
CRASHES = {
    "n": r"\(SIGSEGV\): it used address 0x0 in crash_main\+0x[0-9a-f]+;",
    "w": r"\(SIGSEGV\): it used address 0x7000dead0000 in crash_main\+0x[0-9a-f]+;",
    "r": r"\(SIGSEGV\): its stack is used up, at address 0x[0-9a-f]+ in ",
    "m": r"\(SIGSEGV\): it used address 0x0 in a function that is called in crash_main\+0x",
    "f": r"\(SIGSEGV\): it used address 0x7000dead0000 in a function that is called in crash_main\+0x",
}
CRASH, ECHO = (str(kit.BUILD / f"ifuncs/{name}.ifunc") for name in ("crash", "echo"))

pytestmark = pytest.mark.release_only  # a sanitizer has handlers of its own, and words of its own
each_crash = pytest.mark.parametrize("how", CRASHES)


def words_of(how):
    what = CRASHES[how]
    return re.compile(rf"node \S+ ended while it ran ifunc 'crash' {what}.*content id [0-9a-f]{{12}}, called by \S+")


def crash(t, node, how, **options):
    result = t.ifunc("send", CRASH, node.address, "--payload", how, **options)
    assert result.code != 0, result
    assert node.wait() != 0
    return result


@each_crash
def test_the_last_line_of_a_node_says_which_ifunc_ended_it(t, how):
    node = t.serve("--name", "server")
    crash(t, node, how)
    last = [line for line in node.err.splitlines() if " critical: " in line]
    assert len(last) == 1 and re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d server critical: ", last[0]), node.err
    assert words_of(how).search(last[0]), last


def test_it_is_one_object_with_the_log_format_json(t):
    node = t.serve("--name", "server", "--log-format", "json")
    crash(t, node, "n")
    last = [line for line in map(json.loads, node.err.splitlines()) if line["level"] == "critical"]
    assert len(last) == 1 and last[0]["node"] == "server" and last[0]["ifunc"] == "crash", node.err
    assert words_of("n").search(last[0]["message"]), last
    assert f"content id {last[0]['content_id'][:12]}, called by {last[0]['peer']}" in last[0]["message"], last


@each_crash
def test_so_it_does_for_a_call_on_another_thread_and_for_compiled_code(t, how):
    node = t.serve("--threads", "2", "--no-objects")
    crash(t, node, how)
    assert words_of(how).search(node.err), node.err


def test_who_connects_afterwards_reads_it_from_the_error_or_from_the_next_node(t):
    node = t.serve("--name", "first")
    crash(t, node, "n")
    refused = t.ifunc("send", ECHO, node.address, "--payload", "x")
    assert refused.code != 0 and words_of("n").search(refused.err), refused
    again = t.serve("--listen", node.address, "--name", "second")
    assert "of the node that was here before: node first ended while" in again.err, again.err
    result = t.ifunc("send", ECHO, node.address, "--payload", "x", "--raw")
    assert result.code == 0 and result.out == "x", result
    assert "says of the node that was there before: " in result.err and words_of("n").search(result.err), result
    assert again.stop() == 0
    third = t.serve("--listen", node.address)
    assert "before" not in third.err


def test_a_cluster_says_which_node_died_of_what(t):
    script = f"{kit.IFUNC} send {CRASH} 1 --payload n; sleep 1"
    result = t.ifunc("cluster", "2", "--", "sh", "-c", script)
    assert "ifunc cluster: node 1 died with exit code 139" in result.err, result
    assert re.search(r"node 1 \(node1\) ended while it ran ifunc 'crash' \(SIGSEGV\)", result.err), result


def test_nothing_is_said_where_the_option_is_off(t):
    node = t.serve("--no-last-words")
    crash(t, node, "n")
    assert "ended while" not in node.err
    assert list(t.own_home.path.glob("last-words/*")) == []


def test_a_signal_from_outside_is_nobodys_fault(t):
    node = t.serve()
    assert t.ifunc("send", ECHO, node.address, "--payload", "x").code == 0
    node.signal(11)
    assert node.wait() == -11
    assert "ended while" not in node.err
