# SPDX-License-Identifier: Apache-2.0
"""Peers that take what there is little of: places at the door, descriptors, memory, room in a pipe."""

import contextlib
import fcntl
import os
import pathlib
import re
import resource
import time

import attack
import pytest

import kit
import messages
from kit.client import Client
from kit import SHM, TCP, inside

IDLE = 160  # more than may wait of one host
MANY = 1000
FEW_DESCRIPTORS = ("prlimit", "--nofile=256:256")
LINES_A_SECOND = 20  # of one kind, that a log may grow by whatever strangers do


def half_of_a_greeting(t):
    greeting, _ = messages.record_greeting(t, env=TCP)
    return greeting[:len(greeting) // 2]


def test_a_call_is_answered_while_the_same_user_holds_idle_connections(t):
    node = t.serve("--listen", "127.0.0.1:0")
    held = attack.hold_connections(node.address, IDLE)
    attack.answers_soon(t, node.address)
    attack.answers_soon(t, node.address, env=SHM)
    assert held.result == IDLE and node.running()


def test_a_call_is_answered_while_the_same_user_holds_half_made_greetings(t):
    half = half_of_a_greeting(t)
    node = t.serve("--listen", "127.0.0.1:0")
    held = attack.hold_connections(node.address, MANY, half)
    attack.answers_soon(t, node.address)
    assert held.result == MANY and node.running()


def test_a_call_is_answered_among_half_made_greetings_when_descriptors_are_few(t):
    half = half_of_a_greeting(t)
    node = t.serve("--listen", "127.0.0.1:0", prefix=FEW_DESCRIPTORS)
    held = attack.hold_connections(node.address, MANY, half)
    attack.answers_soon(t, node.address)
    assert held.result > 0 and node.running()


def test_a_call_is_answered_while_another_user_connects_a_thousand_times(t):
    node = t.serve("--listen", "127.0.0.1:0", prefix=FEW_DESCRIPTORS)
    start = time.monotonic()
    with attack.stranger(lambda: attack.hold_connections(node.address, MANY), uid=attack.OTHER_USER):
        attack.answers_soon(t, node.address)
        attack.answers_soon(t, node.address, env=SHM)
    lines = len(attack.lines_about(node.err, "is refused"))
    most = LINES_A_SECOND * (time.monotonic() - start + 1)
    assert 0 < lines <= most, f"{lines} lines about {MANY} refusals; at most {most:.0f} were to be"


def under_attack_from_another_host(t, message, count, prefix=()):
    """A node that trusts everybody answers a client of its own host while another host holds that many connections."""
    (here, address), (there, _) = t.namespaces(2)
    node = t.serve("--listen", f"{address}:0", "--trust", "any", prefix=[*inside(here), *prefix])
    with attack.stranger(lambda: attack.hold_connections(node.address, count, message), namespace=there) as connected:
        assert connected > 0
        attack.answers_soon(t, node.address, prefix=inside(here))
        attack.answers_soon(t, node.address, prefix=inside(here), env=SHM)
        assert node.running()
    return node


def test_a_call_is_answered_while_another_host_holds_idle_connections(t):
    node = under_attack_from_another_host(t, b"", IDLE)
    assert attack.lines_about(node.err, "is refused: .*(did not greet|too many peers)"), node.err


def test_a_call_is_answered_while_another_host_greets_a_thousand_times_and_stops(t):
    greeting, _ = messages.record_greeting(t, env=TCP)
    under_attack_from_another_host(t, greeting, MANY)


def test_a_call_is_answered_while_another_host_takes_all_descriptors_that_it_can_get(t):
    greeting, _ = messages.record_greeting(t, env=TCP)
    node = under_attack_from_another_host(t, greeting, MANY, FEW_DESCRIPTORS)
    assert attack.lines_about(node.err, " is refused: "), "it is refused in silence"


# ---- Links of one key

LINKS_TO_RUN_NOTHING = 16
PEERS_OF_A_CLIENT = 8


def test_a_key_that_may_run_nothing_holds_few_links_and_others_connect(t):
    ana, bob, home = t.home("ana"), t.home("bob"), t.home("node")
    home.trust("ana", ana, "run=none")
    home.trust("bob", bob, "run=any")
    for peer in (ana, bob):
        peer.trust("node", home, "run=none")
    node = t.serve("--listen", "127.0.0.1:0", env={**TCP, **home.env})
    for number in range(LINKS_TO_RUN_NOTHING):
        if number % PEERS_OF_A_CLIENT == 0:
            client = Client(t, {**TCP, **ana.env})
        client.must(f"peer {number % PEERS_OF_A_CLIENT}")
        client.must(f"connect {node.address}")
    hello = t.build("hello.c")
    refused = t.ifunc("send", hello, node.address, "--payload", "you", "--timeout", "1500", env={**TCP, **ana.env})
    attack.says_one_line(refused, r"ana \(keyring, line 1\) has 16 links to this node, and may have 16 at a time \(run=none\)")
    answered = t.ifunc("send", hello, node.address, "--payload", "you", "--timeout", "20000", env={**TCP, **bob.env})
    assert (answered.code, answered.out) == (0, "hello, you"), answered
    attack.answers_soon(t, node.address, env={**TCP, **home.env})
    client.must("close")  # and there is room again
    again = t.ifunc("send", hello, node.address, "--payload", "you", "--timeout", "20000", env={**TCP, **ana.env})
    assert re.search("may run nothing here: run=none", again.err), again


# ---- Threads

# Gives that many threads, and then no more, as a limit on tasks does. RLIMIT_NPROC does not bind root.
FEW_THREADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef int create_t(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static atomic_int given;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  if (atomic_fetch_add(&given, 1) >= atoi(getenv("MOST_THREADS"))) return EAGAIN;
  return ((create_t *)dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, body, argument);
}
"""


def few_threads(t, most):
    library = t.path("few_threads.so")
    assert t.run("cc", "-shared", "-fPIC", t.write("few_threads.c", FEW_THREADS), "-o", library, "-ldl").code == 0
    return {"LD_PRELOAD": library, "MOST_THREADS": str(most)}


@pytest.mark.release_only  # a sanitizer has a pthread_create of its own
def test_a_node_that_gets_no_more_threads_runs_code_that_is_not_tuned(t):
    """One thread takes signals, and one computes handshakes. The tuner, the watchdog and the rest get none."""
    node = t.serve("--listen", "127.0.0.1:0", "--no-object", env=few_threads(t, 2))
    for env in (TCP, SHM):
        attack.answers_soon(t, node.address, env=env)
    time.sleep(1.5)  # it tries again meanwhile
    attack.answers_soon(t, node.address)
    assert node.running(), node.err
    assert len(attack.lines_about(node.err, "stays as it is until a thread can be started")) == 1, node.err
    assert node.stop() == 0, node.err


@pytest.mark.release_only
def test_a_node_that_cannot_start_for_lack_of_a_thread_says_so(t):
    refused = t.ifunc("serve", "--listen", "127.0.0.1:0", env=few_threads(t, 0))
    attack.says_one_line(refused, "no thread can be started that takes signals: a limit on tasks or memory leaves no thread")
    for option in (["--threads", "2"], ["--isolate", "all"]):
        refused = t.ifunc("serve", "--listen", "127.0.0.1:0", *option, env=few_threads(t, 1))
        assert refused.code == 1 and re.search("a limit on tasks or memory leaves no thread", refused.err), refused


# ---- Files


def test_a_limit_of_file_sizes_costs_what_cannot_be_written_and_not_the_node(t):
    node = t.serve("--listen", "127.0.0.1:0", prefix=("prlimit", "--fsize=65536"))
    attack.answers_soon(t, node.address)
    assert node.running() and node.stop() == 0


# ---- Memory

PAYLOAD_BYTES = 200_000_000
SMALL_BYTES = 150_000_000  # that the node may still take, less than the payload


def forbid_more_memory(node):
    """The node may map that much more than it has, and no more."""
    status = pathlib.Path(f"/proc/{node.pid}/status").read_text()
    now = int(re.search(r"VmSize:\s+(\d+) kB", status)[1]) * 1024
    resource.prlimit(node.pid, resource.RLIMIT_AS, (now + SMALL_BYTES, resource.RLIM_INFINITY))


def lives_without_memory(t, env):
    hello = t.build("hello.c")
    large = t.path("large")
    with open(large, "wb") as file:
        file.truncate(PAYLOAD_BYTES)
    node = t.serve("--listen", "127.0.0.1:0", "--no-bitcode")  # a compiler maps memory whenever it gets to it
    other = Client(t, env)  # another peer, that has done nothing wrong
    other.must(f"register {hello}")
    other.must(f"connect {node.address}")
    assert other.ask("call 20000 one") == "ok hello, one"
    forbid_more_memory(node)
    result = t.ifunc("send", hello, node.address, "--payload-file", large, "--timeout", "60000", env=env,
                     seconds=3 * attack.PATIENCE)
    assert node.running(), f"the node ended: {node.err[-2000:]}"
    assert result.code == 1 and re.search("memory", result.err), f"the sender is not told why: {result!r:.2000}"
    assert other.ask("call 20000 two") == "ok hello, two"
    attack.answers_soon(t, node.address, env=env)


@pytest.mark.release_only
def test_a_payload_for_which_there_is_no_memory_fails_alone_by_shared_memory(t):
    lives_without_memory(t, SHM)


@pytest.mark.release_only
def test_a_payload_for_which_there_is_no_memory_fails_alone_by_tcp(t):
    lives_without_memory(t, TCP)


# ---- The log

CHATTER = 100_000  # lines, for which there was a file of 7.7 MB


def test_a_call_that_logs_without_end_leaves_a_small_log_that_says_what_it_lacks(t):
    node = t.serve("--listen", "127.0.0.1:0")
    chatter, payload = t.build("chatter.c"), t.write("lines", CHATTER.to_bytes(4, "little"))
    for _ in range(3):
        result = t.ifunc("send", chatter, node.address, "--payload-file", payload, "--timeout", "60000")
        assert result.code == 0, result
    kit.run_until(lambda: attack.lines_about(node.err, "lines of ifunc 'chatter' from .* were left out"), "it is told")
    node.stop()
    written = len(attack.lines_about(node.err, "ifunc 'chatter': all is well"))
    left_out = sum(int(number) for number in re.findall(r"(\d+) lines of ifunc 'chatter' from", node.err))
    assert written + left_out == 3 * CHATTER, (written, left_out)
    assert len(node.err) < 300_000, f"{len(node.err)} bytes"


CONNECTIONS = 300  # of each, the node says at least that it ended: there is room for some forty lines


def come_and_go(client, node, times):
    for _ in range(times):
        client.must(f"connect {node.address}")
        client.must("close")


def test_a_node_whose_log_nobody_reads_still_answers(t):
    log = t.path("log")
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    t.cleanups.append(lambda: os.close(reader))
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    node = t.serve("--listen", "127.0.0.1:0", "--log", "info", prefix=["sh", "-c", 'exec "$@" 2>"$0"', log])
    client = Client(t, TCP)
    come_and_go(client, node, CONNECTIONS)
    attack.answers_soon(t, node.address)
    attack.answers_soon(t, node.address, env=SHM)
    # Whoever reads again sees what is said from then on, and how many lines are missing.
    read = drain(reader)
    assert len(read) >= 2000, f"only {len(read)} bytes were logged, so this test says nothing"
    come_and_go(client, node, 2)
    read += kit.run_until(lambda: drain(reader), "something is logged again")
    dropped = sum(int(number) for number in re.findall(r"(\d+) lines of this log were dropped", read))
    assert dropped > 0 and dropped + len(attack.lines_about(read, "link to .* ended")) >= CONNECTIONS, read[-1000:]


def drain(reader):
    text = b""
    with contextlib.suppress(BlockingIOError):
        while more := os.read(reader, 65536):
            text += more
    return text.decode(errors="replace")
