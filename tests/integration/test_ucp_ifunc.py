# SPDX-License-Identifier: Apache-2.0
"""Programs written from the papers' listings (examples/ucp_ifunc), over posix shared memory and over TCP."""

import contextlib
import hashlib
import os
import shutil

import pytest

import kit

pytestmark = pytest.mark.unfreed

IFUNCS = str(kit.BUILD / "ifuncs")
SHM, TCP = kit.UCX_SHM, kit.UCX_TCP


def run(t, transport, program, *arguments, env={}):
    path = kit.BUILD / "bin" / f"ucp_{program}"
    if not path.exists():
        pytest.skip(f"{path.name} is not built")
    environment = {**transport, "UCX_IFUNC_LIB_DIR": IFUNCS, "UCX_WARN_UNUSED_ENV_VARS": "n", **env}
    result = t.run(str(path), *map(str, arguments), env=environment, seconds=100)
    assert result.code == 0, f"{program} {arguments}: {result}"
    return result


def ping_pong(t, transport):
    for payload in (0, 1, 1000, 70000):
        for memory in ("allocated", "own"):
            result = run(t, transport, "pingpong", payload, 50, memory)
            assert f"50 rounds of {payload} bytes" in result.out, result


def test_ping_pong_over_shared_memory_in_one_slot_each(t):
    ping_pong(t, SHM)


def test_ping_pong_over_tcp_in_one_slot_each(t):
    ping_pong(t, TCP)


def ring(t, transport):
    for payload, rounds, slots, memory in ((1, 20, 64, "allocated"), (5000, 10, 16, "allocated"), (300, 20, 16, "own")):
        result = run(t, transport, "ring", payload, rounds, slots, memory)
        assert f"{rounds * slots} messages of {payload} bytes ran" in result.out, result


def test_a_ring_of_slots_over_shared_memory(t):
    ring(t, SHM)


def test_a_ring_of_slots_over_tcp(t):
    ring(t, TCP)


def test_a_chase_finds_its_own_way_over_three_nodes_with_shared_memory(t):
    assert "10 chases of 60 steps" in run(t, SHM, "chase_nodes", 10, 60).out


def test_a_chase_finds_its_own_way_over_three_nodes_with_tcp(t):
    assert "10 chases of 60 steps" in run(t, TCP, "chase_nodes", 10, 60).out


def test_a_chase_whose_first_node_is_killed_leaves_no_process(t):
    path = kit.BUILD / "bin/ucp_chase_nodes"
    if not path.exists():
        pytest.skip("ucp_chase_nodes is not built")
    first = t.start(str(path), "1000000000", "60",
                    env={**SHM, "UCX_IFUNC_LIB_DIR": IFUNCS, "UCX_WARN_UNUSED_ENV_VARS": "n"})

    def others():
        return [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != first.pid and of_group(pid)]

    def of_group(pid):
        with contextlib.suppress(OSError):
            fields = open(f"/proc/{pid}/stat", encoding="utf-8").read().rpartition(")")[2].split()
            return fields[0] != "Z" and fields[2] == str(first.pid)
        return False

    kit.run_until(lambda: len(others()) == 2, "three processes")
    first.kill()
    kit.run_until(lambda: not others(), "the end of the two others")


def record_digest():
    return hashlib.sha256(bytes(ord("a") + i % 17 for i in range(5000))).hexdigest()


def test_the_2021_listing_runs_with_zlib_libcrypto_and_a_thread_over_shared_memory(t):
    for memory in ("allocated", "own"):
        assert f"5000 bytes, SHA-256 {record_digest()}\n" == run(t, SHM, "listing_1_4", memory).out


def test_the_2021_listing_runs_with_zlib_libcrypto_and_a_thread_over_tcp(t):
    assert f"5000 bytes, SHA-256 {record_digest()}\n" == run(t, TCP, "listing_1_4").out


def without_slots(t, transport):
    for payload, messages in ((1, 200), (300000, 20)):
        result = run(t, transport, "without_slots", payload, messages)
        assert f"{messages} messages of {payload} bytes ran" in result.out, result


def test_worker_progress_alone_runs_ifuncs_over_shared_memory(t):
    without_slots(t, SHM)


def test_worker_progress_alone_runs_ifuncs_over_tcp(t):
    without_slots(t, TCP)


def test_loose_bitcode_beside_a_deps_file_is_packed_when_it_is_registered(t):
    clang = shutil.which("clang-22")
    if clang is None:
        pytest.skip("clang-22 is not installed")
    if not (kit.BUILD / "libexec/threechains/ifunc-toolchain").exists():
        pytest.skip("ifunc-toolchain is not built")
    folder = t.path("loose")
    os.mkdir(folder)
    source = kit.ROOT / "examples/ucp_ifunc/digest.c"
    for triple in ("x86_64-pc-linux-gnu", "aarch64-unknown-linux-gnu"):
        built = t.run(clang, f"--target={triple}", "-O2", "-fPIC", "-c", "-emit-llvm", str(source), "-o",
                      os.path.join(folder, f"digest.{triple}.bc"), "-idirafter", "/usr/aarch64-linux-gnu/include")
        assert built.code == 0, built
    shutil.copy(source.with_suffix(".deps"), os.path.join(folder, "digest.deps"))
    result = run(t, SHM, "listing_1_4", env={"UCX_IFUNC_LIB_DIR": folder})
    assert record_digest() in result.out, result


def test_an_ifunc_that_is_not_there_is_named_with_the_directory(t):
    path = kit.BUILD / "bin/ucp_ring"
    if not path.exists():
        pytest.skip("ucp_ring is not built")
    result = t.run(str(path), env={**SHM, "UCX_IFUNC_LIB_DIR": t.directory, "UCX_WARN_UNUSED_ENV_VARS": "n"})
    assert result.code != 0 and "count" in result.err and t.directory in result.err, result
