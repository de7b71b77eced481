# SPDX-License-Identifier: Apache-2.0
"""`ifunc bench dapc`: every mode chases to the right end, and nothing is left behind however it ends."""

import json
import os
import pathlib
import shutil
import signal
import time

import pytest

import kit

pytestmark = pytest.mark.release_only  # the same library runs in programs that answer sooner

MODES = ["am", "get", "ifunc_bitcode", "ifunc_object"]
SMALL = ["--runs", "2", "--run-ms", "2"]


def dapc(t, *options, shard=64):
    result = t.ifunc("bench", "dapc", *SMALL, "--shard", str(shard), *options, "--json", seconds=100)
    assert result.code == 0, result
    return json.loads(result.out)


def children(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(stat.parent.name))
        except (OSError, IndexError):
            pass  # it ended meanwhile
    return sorted(found)


def server_number(pid):
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    return words[words.index("--index") + 1]


def long_chase(t, count=3):
    """A benchmark that is chasing, and its servers."""
    bench = t.start(kit.IFUNC, "bench", "dapc", "--servers", str(count), "--depth", "4096", "--runs", "1000",
                    "--run-ms", "1000")
    kit.run_until(lambda: bench.running() and len(children(bench.pid)) == count, "servers started")
    time.sleep(1)  # anywhere in the middle of things
    servers = children(bench.pid)
    assert bench.running() and len(servers) == count, bench.err
    return bench, servers


def gone(pid):
    try:
        return "\nState:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def check_point(point, servers, depth, inflight):
    assert (point["servers"], point["depth"], point["inflight"]) == (servers, depth, inflight), point
    assert point["verified"] is True and point["answers"] >= 2 * sum(point[mode]["chases_per_run"] for mode in MODES)
    for mode in MODES:
        low, high = point[mode]["chases_per_s_spread"]
        assert 0 < low <= point[mode]["chases_per_s"] <= high, point[mode]
    for mode in ["ifunc_bitcode", "ifunc_object"]:
        assert point[mode]["rate_ratio_to_am"] > 0 and point[mode]["rate_ratio_to_get"] > 0, point[mode]
        # The bound is that of one chase at a time which has somewhere to go.
        assert ("fraction_of_bound_vs_get" in point[mode]) == (servers > 1 and inflight == 1), point
    assert ("one_way_us" in point) == (servers > 1) and point["get_us"] > 0, point


def check_sweep(t, *options):
    found = dapc(t, *options, "--servers", "1,3", "--depth", "1,7", "--inflight", "1,5")
    assert (found["bench"], found["runs"], found["shard_entries"], found["complete"]) == ("dapc", 2, 64, True), found
    settings = [(s, d, i) for s in (1, 3) for d in (1, 7) for i in (1, 5)]
    assert len(found["points"]) == len(settings), found["points"]
    for point, setting in zip(found["points"], settings):
        check_point(point, *setting)
    return found


def test_all_modes_agree_over_shared_memory(t):
    found = check_sweep(t, "--transport", "shm")
    assert found["transport"] == "shm" and found["namespaces"] is False, found


def test_all_modes_agree_over_tcp_on_loopback(t):
    found = check_sweep(t, "--transport", "tcp", "--loopback")
    assert (found["transport"], found["namespaces"]) == ("tcp", False), found


def test_all_modes_agree_between_network_namespaces(t):
    t.namespaces(1)  # or skips
    found = check_sweep(t, "--transport", "tcp")
    assert found["namespaces"] is True, found


def test_chases_longer_than_the_table_go_round_it(t):
    found = dapc(t, "--loopback", "--servers", "2", "--depth", "1000", shard=2)
    check_point(found["points"][0], 2, 1000, 1)


def test_another_seed_is_another_table_with_right_answers(t):
    found = dapc(t, "--loopback", "--seed", "7", "--servers", "2", "--depth", "64")
    assert found["seed"] == 7, found
    check_point(found["points"][0], 2, 64, 1)


def test_nonsense_options_are_exit_code_2(t):
    for options in [["--servers", "0"], ["--servers", "two"], ["--depth", "0"], ["--depth", "100000"],
                    ["--inflight", "0"], ["--runs", "0"], ["--transport", "pigeon"], ["--shard", "1"]]:
        result = t.ifunc("bench", "dapc", *options)
        assert result.code == 2 and result.out == "" and options[0] in result.err, (options, result)


def test_a_stopped_benchmark_prints_what_is_done_and_leaves_nothing(t):
    for number in [signal.SIGINT, signal.SIGTERM]:
        before = set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()
        bench, servers = long_chase(t)
        bench.signal(number)
        assert bench.wait() == 130, bench.err
        assert "Stopped before the end" in bench.out and bench.err.count("error") == 0, (bench.out, bench.err)
        for pid in servers:
            kit.run_until(lambda pid=pid: gone(pid), f"server process {pid} gone")
        after = set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()
        assert not [name for name in after - before if name.startswith(f"tc{bench.pid}")], after


def test_a_killed_benchmark_takes_its_servers_along(t):
    bench, servers = long_chase(t)
    bench.signal(signal.SIGKILL)
    for pid in servers:
        kit.run_until(lambda pid=pid: gone(pid), f"server process {pid} gone")


def test_a_server_killed_in_mid_chase_is_named(t):
    for _ in range(3):
        bench, servers = long_chase(t)
        victim = servers[1]
        name = f"server {server_number(victim)} was killed by signal 9"
        os.kill(victim, signal.SIGKILL)
        assert bench.wait(20) == 1, bench.out
        assert name in bench.err, bench.err
        for pid in servers:
            kit.run_until(lambda pid=pid: gone(pid), f"server process {pid} gone")


def test_a_server_that_cannot_start_says_why(t):
    result = t.ifunc("bench", "dapc", *SMALL, "--transport", "tcp", "--servers", "2", "--depth", "4",
                     env={"UCX_TCP_PORT_RANGE": "1-1"})  # one port where each needs several
    assert result.code == 1 and "server " in result.err and "ucp_worker_create: Device is busy" in result.err, result


def test_a_chaser_of_ones_own_is_chased_with_and_named(t):
    chaser = str(kit.BUILD / "ifuncs/chaser.ifunc")
    result = dapc(t, "--transport", "shm", "--servers", "2", "--depth", "40", "--ifunc", chaser)
    assert result["ifunc"] == chaser, result
    check_point(result["points"][0], 2, 40, 1)
    echo = str(kit.BUILD / "ifuncs/echo.ifunc")
    result = t.ifunc("bench", "dapc", *SMALL, "--transport", "shm", "--servers", "1", "--depth", "4", "--ifunc", echo)
    assert result.code != 0 and "bytes when 8 were due" in result.err, result


def test_another_language_chases_the_same_ways_beside_c(t):
    if not shutil.which(os.environ.get("TC_RUSTC") or "rustc"):
        pytest.skip("there is no rustc")
    result = dapc(t, "--transport", "shm", "--servers", "2", "--depth", "40", "--lang", "c,rust")
    point = result["points"][0]
    assert result["languages"] == ["rust"], result
    check_point(point, 2, 40, 1)
    c, rust = point["ifunc_bitcode"], point["ifunc_bitcode_rust"]
    assert rust["chases_per_run"] == c["chases_per_run"] and rust["executed_per_run"] == c["executed_per_run"], point
    # The request, and a hop to the other server now and then.
    assert c["chases_per_run"] <= c["executed_per_run"] <= c["chases_per_run"] * 41, point
    assert rust["rate_ratio_to_c"] > 0 and "rate_ratio_to_c" not in c, point


def test_a_language_without_its_compiler_is_refused_with_the_remedy(t):
    small = [*SMALL, "--transport", "shm", "--servers", "1", "--depth", "4"]
    result = t.ifunc("bench", "dapc", *small, "--lang", "julia", env={"TC_JULIA": "", "PATH": "/nowhere"})
    assert result.code == 1 and "there is no julia on the PATH; install Julia" in result.err, result
    assert "chaser.jl cannot be built on this machine" in result.err, result
    result = t.ifunc("bench", "dapc", *small, "--lang", "cobol")
    assert result.code == 2 and "cobol" in result.err, result
