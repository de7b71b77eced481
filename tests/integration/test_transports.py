# SPDX-License-Identifier: Apache-2.0
"""Nodes and UCX: a node that is not told to use it never maps it, and two versions of it meet where they can.

The second version comes from the wheel of PyPI that is named below, fetched once into the build directory.
"""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

import kit
from kit import UCX_TCP, inside

WHEEL, VERSION = "libucx-cu12", "1.22.0"
MEMORY = {"UCX_TLS": "posix,self"}
FETCHED = kit.BUILD / "ucx-wheel"


DOWNLOAD_S = 100
with_newer_ucx = pytest.mark.limit(DOWNLOAD_S + 300)


def newer_ucx():
    """The folder with the other version's libraries. Skips when they cannot be had."""
    folder = FETCHED / VERSION
    libraries = folder / "libucx/lib"
    if os.uname().machine != "x86_64":
        pytest.skip(f"the wheel {WHEEL} is for x86_64")
    if not libraries.is_dir():
        fetch(folder)
    return {"LD_LIBRARY_PATH": str(libraries)}


def fetch(folder):
    # One of several cases at the same time: each into a folder of its own, and the first one's stays.
    own = folder.with_name(f"{folder.name}.{os.getpid()}")
    own.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(own),
               "--disable-pip-version-check", f"{WHEEL}=={VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{WHEEL} {VERSION} does not come from PyPI in time")
    wheels = list(own.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        pytest.skip(f"{WHEEL} {VERSION} cannot be fetched: {done.stderr.strip()[-200:]}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(own)
    wheels[0].unlink()
    try:
        own.rename(folder)
    except OSError:
        pass  # another case was first


def mapped(process, name):
    return sorted({line.split()[-1] for line in process.maps().splitlines() if name in line})


def call(t, node, transport, env, prefix=()):
    """Ten calls of `hello` from a process with that environment."""
    return t.run(*prefix, kit.IFUNC, "send", t.build("hello.c"), node.address, "--payload", "world", "--transport",
                 transport, "--repeat", "10", "--timeout", "60000", env=env)


def expect_answers(t, node, transport, env, prefix=()):
    result = call(t, node, transport, env, prefix)
    assert (result.code, result.out) == (0, "hello, world" * 10), result


def expect_refusal(t, node, transport, env, words):
    result = call(t, node, transport, env)
    assert result.code == 1 and words in result.err and result.seconds < 10 * kit.slowness(), result
    assert node.running(), node.err


def test_a_node_that_was_not_told_to_never_maps_ucx(t):
    hello = t.build("hello.c")
    for options in [[], ["--transport", "shm"], ["--transport", "tcp"]]:
        node = t.serve(*options)
        result = t.ifunc("send", hello, node.address)
        assert result.code == 0, result
        assert mapped(node, "libuc") == [] and mapped(node, "threechains_ucx") == [], node.maps()


def test_a_node_with_the_option_maps_ucx(t):
    for transport in ["ucx", "ucx-put"]:
        node = t.serve("--transport", transport, env=UCX_TCP)
        assert mapped(node, "libucp.so") and mapped(node, "threechains_ucx"), node.maps()


def test_a_peer_that_asks_for_ucx_of_a_node_without_it_is_told_what_to_do(t):
    node = t.serve()
    expect_refusal(t, node, "ucx", UCX_TCP, "start it with the option transport=ucx")
    assert mapped(node, "libuc") == [], node.maps()


def test_memory_for_puts_that_ucx_takes_from_the_heap_has_nothing_of_what_was_there(t):
    env = {**UCX_TCP, "UCX_ALLOC_PRIO": "heap", "MALLOC_PERTURB_": "85"}
    node = t.serve("--transport", "ucx-put", env=env)
    expect_answers(t, node, "ucx-put", env)


def test_ucx_over_all_network_devices_is_refused_with_the_choices(t):
    result = t.ifunc("serve", "--transport", "ucx", env={"UCX_TLS": None, "UCX_NET_DEVICES": None})
    assert result.code == 2 and "ucx-devices" in result.err, result


@with_newer_ucx
def test_a_newer_ucx_works_with_itself_over_memory_and_over_tcp(t):
    newer = newer_ucx()
    for tls in [MEMORY, UCX_TCP]:
        for transport in ["ucx", "ucx-put"]:
            env = {**newer, **tls}
            node = t.serve("--transport", transport, env=env)
            libraries = mapped(node, "libucp.so")
            assert all(str(FETCHED) in path for path in libraries) and libraries, libraries
            expect_answers(t, node, transport, env)
            assert node.stop() == 0, node.err


@with_newer_ucx
def test_two_versions_of_ucx_speak_active_messages_over_a_network_both_ways(t):
    newer = newer_ucx()
    (here, _), (there, address) = t.namespaces(2)
    network = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}
    for ours, theirs in [(newer, {}), ({}, newer)]:
        node = t.serve("--listen", f"{address}:0", "--transport", "ucx", env={**ours, **network},
                       prefix=inside(there))
        for _ in range(3):
            expect_answers(t, node, "ucx", {**theirs, **network}, inside(here))
        assert node.running(), node.err
        node.kill()


# On the loopback device each version has a name of its own for this machine, so they take each other for strangers.
@with_newer_ucx
def test_two_versions_of_ucx_find_no_way_over_loopback_and_say_so(t):
    newer = newer_ucx()
    for ours, theirs in [(newer, {}), ({}, newer)]:
        node = t.serve("--transport", "ucx", env={**ours, **UCX_TCP})
        expect_refusal(t, node, "ucx", {**theirs, **UCX_TCP}, "no UCX transport leads to the peer")


@with_newer_ucx
def test_two_versions_of_ucx_refuse_each_other_elsewhere_and_say_why(t):
    newer = newer_ucx()
    for ours, theirs in [(newer, {}), ({}, newer)]:
        for transport, tls in [("ucx", MEMORY), ("ucx-put", MEMORY), ("ucx-put", UCX_TCP)]:
            node = t.serve("--transport", transport, env={**ours, **tls})
            expect_refusal(t, node, transport, {**theirs, **tls}, "between them only Active Messages over TCP work")
            assert node.stop() == 0, node.err
