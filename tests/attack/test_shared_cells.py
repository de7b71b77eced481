# SPDX-License-Identifier: Apache-2.0
"""Callers of one node whose code runs in cells: nothing that the code of one leaves in memory is there for another's."""

import os
import signal

import pytest

import attack
import kit
from kit.client import Client

PLACES = ["variable", "heap", "place", "data", "environment"]
NOTHING = dict.fromkeys(PLACES, "-")


class Sender:
    """Somebody with a key, whose client stays connected. All send the same code, which ana has signed."""

    def __init__(self, t, home, bundle, node):
        self.client = Client(t, {**kit.TCP, **home.env})
        self.client.must(f"register {bundle}")
        self.client.must(f"connect {node.address}")

    def leave(self, what):
        """Has the code leave that everywhere. Its process, and what it found before."""
        words = self.client.must(f"call 100000 {what}", seconds=150).split()
        assert words[2::2] == PLACES, words
        return int(words[1]), dict(zip(PLACES, words[3::2]))


@pytest.fixture
def senders(t):
    home = t.home("node")
    homes = {name: attack.acquainted(t, name, home) for name in ["ana", "bob"]}
    for name, one in homes.items():
        home.trust(name, one, "run=signed", "read=*", "write=*")
    bundle = t.build("leave.c")
    assert t.ifunc("sign", bundle, "--key", homes["ana"].key_file(), env=homes["ana"].env).code == 0
    text = t.write("text", "of-all")
    node = t.serve("--listen", "127.0.0.1:0", "--isolate", "untrusted", "--allow-lib", "libc.so.6", "--data", f"text={text}",
                   "--stats", env=home.env)
    return *[Sender(t, one, bundle, node) for one in homes.values()], node, home


def everywhere(what):
    return {**dict.fromkeys(PLACES, what), "data": "of-all"}


def test_what_code_of_one_caller_leaves_in_memory_is_not_there_for_another(senders):
    ana, bob, node, _ = senders
    process, found = ana.leave("of-ana")
    assert found == NOTHING
    assert ana.leave("of-ana") == (process, everywhere("of-ana")), "the same caller finds what it left"
    other_process, found = bob.leave("of-bob")
    assert other_process != process and found == NOTHING
    assert ana.leave("of-ana") == (process, everywhere("of-ana"))
    assert bob.leave("of-bob") == (other_process, everywhere("of-bob"))
    assert node.stop() == 0 and node.stats["cell-deaths"] == 0, node.stats


def test_what_code_leaves_in_memory_is_not_there_by_other_rights_of_its_caller(senders):
    ana, _, node, home = senders
    process, _ = ana.leave("of-ana")
    home.write_lines(*[line.replace("read=*", "read=other") for line in home.lines()])
    node.signal(signal.SIGHUP)
    kit.run_until(lambda: not os.path.exists(f"/proc/{process}"), "the cell of the rights of before ends")
    other_process, found = ana.leave("of-ana")
    assert other_process != process and found == NOTHING
