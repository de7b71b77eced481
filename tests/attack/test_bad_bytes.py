# SPDX-License-Identifier: Apache-2.0
"""Bytes that are nearly right, and bytes that are nothing: the node says so, lives, and answers the next call."""

import os
import random
import re
import socket

import attack
import kit
import messages
import sessions

GREETINGS = 2500
SESSIONS = 200
BLOBS = 200  # of each kind
SEED = 20_240_229


def mutated(message, count=GREETINGS):
    return list(messages.mutations(message, count, SEED))


def lives(t, node, env=kit.TCP):
    assert node.running(), f"the node ended: {node.err[-2000:]}"
    attack.answers_soon(t, node.address, env=env)


def understood_too_little(answers):
    """How many were refused for what they said: not for who said it, and not for what was missing."""
    others = (attack.KEPT_OUT, *attack.ENDED)
    return sum("TCN1" in answer and not any(words in answer for words in others) for answer in answers)


def test_a_node_survives_mutated_greetings_on_a_network_that_it_trusts(t):
    greeting, _ = messages.record_greeting(t, env=kit.TCP)
    node = t.serve("--listen", "127.0.0.1:0", *messages.PLAIN)
    answers = attack.say_all(node.address, mutated(greeting))
    assert understood_too_little(answers) > GREETINGS / 2, "most were not read, so this test says little"
    lives(t, node)


def test_a_node_reads_no_greeting_that_is_not_encrypted(t):
    greeting, _ = messages.record_greeting(t, env=kit.TCP)
    node = t.serve("--listen", "127.0.0.1:0")
    answers = attack.stranger_does(lambda: attack.say_all(node.address, mutated(greeting)), uid=attack.OTHER_USER)
    assert understood_too_little(answers) == 0, "something that a stranger said was read"
    lives(t, node)


def test_a_node_survives_mutated_greetings_from_another_host_that_it_trusts(t):
    (here, address), (there, _) = t.namespaces(2)
    greeting, _ = messages.record_greeting(t, env=kit.TCP)
    node = t.serve("--listen", f"{address}:0", "--trust-network", "10.99.0.0/24", prefix=kit.inside(here))
    answers = attack.stranger_does(lambda: attack.say_all(node.address, mutated(greeting)), namespace=there)
    assert understood_too_little(answers) > GREETINGS / 2, "most were not read, so this test says little"
    assert node.running(), node.err[-2000:]
    attack.answers_soon(t, node.address, prefix=kit.inside(here))


def test_a_node_survives_mutated_greetings_inside_sessions(t):
    greeting = sessions.inside(messages.record_greeting(t, env=kit.TCP)[0])
    node = t.serve("--listen", "127.0.0.1:0")
    files = sessions.certificate(t, t.own_home)
    answers = [sessions.say(node.address, said, files) for said in mutated(greeting, SESSIONS)]
    assert understood_too_little(answers) > SESSIONS / 2, "most were not read, so this test says little"
    lives(t, node)


def test_a_node_survives_mutated_greetings_at_its_unix_socket(t):
    greeting, memory = messages.record_greeting(t, by_unix=True)
    node = t.serve("--listen", "127.0.0.1:0")
    answers = attack.say_all(attack.unix_name(node.address), mutated(greeting), memory)
    assert understood_too_little(answers) > GREETINGS / 2, "most were not read, so this test says little"
    lives(t, node, env=kit.SHM)


def test_a_node_survives_memory_that_is_not_what_the_greeting_says(t):
    greeting, _ = messages.record_greeting(t, by_unix=True)
    node = t.serve("--listen", "127.0.0.1:0")
    door = attack.unix_name(node.address)
    short, unsealed = os.memfd_create("short"), os.memfd_create("unsealed")
    os.truncate(unsealed, 1 << 20)
    with open(t.write("file", b"x" * (1 << 20)), "r+b") as file, socket.socket() as other:
        for descriptor in [short, unsealed, file.fileno(), other.fileno()]:
            answer = attack.say(door, greeting, [descriptor])
            assert "it offers" in answer, answer
        assert "it offers" in attack.say(door, greeting), "without any memory"
        assert "more than one descriptor" in attack.say(door, greeting, [short, unsealed])
    lives(t, node, env=kit.SHM)


UCX = ["--transport", "ucx", "--ucx-devices", "lo"]
UCX_ENV = {"UCX_TLS": "tcp,self", "TC_TRANSPORT": None}


def ucx_node_and_greeting(t, trusted=True):
    attack.needs_ucx()
    env = {**UCX_ENV, "UCX_NET_DEVICES": "lo"}
    greeting, _ = messages.record_greeting(t, "--transport", "ucx", env=env)
    assert b"ucx" in greeting, greeting
    return t.serve("--listen", "127.0.0.1:0", *UCX, *(messages.PLAIN if trusted else ()), env=UCX_ENV), greeting


def call_by_ucx(t, node, options=messages.PLAIN):
    result = t.ifunc("send", t.build("hello.c"), node.address, "--transport", "ucx", "--payload", "you", *options,
                     env={**UCX_ENV, "UCX_NET_DEVICES": "lo"})
    assert (result.code, result.out) == (0, "hello, you"), result


def test_a_strangers_greeting_never_reaches_ucx(t):
    node, greeting = ucx_node_and_greeting(t, trusted=False)
    answers = attack.stranger_does(lambda: attack.say_all(node.address, mutated(greeting)), uid=attack.OTHER_USER)
    assert understood_too_little(answers) == 0, "something that a stranger said was read"
    assert node.running(), node.err[-2000:]
    call_by_ucx(t, node, ())


def test_a_node_that_uses_ucx_survives_mutated_greetings_on_a_network_that_it_trusts(t):
    node, greeting = ucx_node_and_greeting(t)
    answers = attack.say_all(node.address, mutated(greeting))
    assert understood_too_little(answers) > GREETINGS / 2, "most were not read, so this test says little"
    assert node.running(), node.err[-2000:]
    call_by_ucx(t, node)


def refusals_told(log):
    """How many refusals a log tells of: one a line, or, where there were too many, their number."""
    counted = sum(int(line.split()[-7]) for line in attack.lines_about(log, r"\d+ more were refused in a second$"))
    return len(attack.lines_about(log, " is refused: ")) + counted


def losses_told(log):
    """The same of lost links."""
    counted = sum(int(re.search(r"(\d+) lines? about ", line)[1]) for line in attack.lines_about(log, r" (was|were) left out: "))
    return len(attack.lines_about(log, "link to .* dropped: ")) + counted


def test_random_messages_lose_their_own_connection_and_each_loss_is_told_once(t):
    chance = random.Random(SEED)
    blobs = [chance.randbytes(chance.randrange(12, 2000)) for _ in range(3 * BLOBS)]
    greeting, _ = messages.record_greeting(t, env=kit.TCP)
    node = attack.ProgramNode(t, "127.0.0.1:0", "log=info", messages.PLAIN_SETTING)
    attack.say_all(node.address, blobs[:BLOBS])
    attack.say_all(attack.unix_name(node.address), blobs[BLOBS:2 * BLOBS])
    attack.say_all(node.address, [greeting + blob for blob in blobs[2 * BLOBS:]])
    numbers = attack.wait_for_ends(node, len(blobs))
    assert numbers == {"refused-peers": 2 * BLOBS, "dropped-links": BLOBS, "links": 0}
    assert node.stat("executed") == 0
    kit.run_until(lambda: refusals_told(node.err) == 2 * BLOBS, f"{2 * BLOBS} refusals are told")
    kit.run_until(lambda: losses_told(node.err) == BLOBS, f"{BLOBS} lost links are told")
    lives(t, node)
    assert refusals_told(node.err) == 2 * BLOBS, "some were told more than once"
    assert losses_told(node.err) == BLOBS, "some were told more than once"
