# SPDX-License-Identifier: Apache-2.0
"""`ifunc bench tsi`, `bulk` and `mixed`: that they measure, on every transport, and say all that docs/measuring.md
promises; `ifunc bench dapc` and `graph` through UCX. What they measure is not judged here."""

import json

import pytest

import kit

pytestmark = pytest.mark.release_only  # it shows that programs measure

TSI_SMALL = ["--runs", "2", "--latency-rounds", "200", "--rate-calls", "6400", "--first-samples", "2"]


def bench(t, name, transport, *options):
    result = t.ifunc("bench", name, "--transport", transport, *options, "--json", seconds=100)
    assert result.code == 0, result
    found = json.loads(result.out)
    assert (found["bench"], found["transport"], found["runs"]) == (name, transport, 2), found
    assert "way" not in found, found
    return found


def pinned_bench(*arguments):
    found = bench(*arguments)
    placement = found["placement"]
    assert len(set(placement["cpus"])) == 2 and placement["verdict"] in ("near", "far", "mixed"), placement
    check_figures(placement, "flag_latency_ns")
    return found


def check_figures(holder, *keys):
    for key in keys:
        low, high = holder[key + "_spread"]
        assert 0 < low <= holder[key] <= high, (key, holder)


def check_tsi(t, transport):
    found = pinned_bench(t, "tsi", transport, *TSI_SMALL)
    check_figures(found["raw"], "latency_ns", "rate_msgs_per_s")
    assert ("ring_latency_ns" in found["raw"]) == transport.endswith("shm"), found["raw"]
    check_figures(found["am"], "latency_ns", "rate_msgs_per_s", "batched64_rate_msgs_per_s")
    check_figures(found["cached"], "latency_ns", "rate_msgs_per_s", "single_rate_msgs_per_s", "latency_ratio_to_am",
                  "latency_ratio_to_raw", "rate_ratio_to_am", "rate_ratio_to_raw", "single_rate_ratio_to_am",
                  "single_rate_ratio_to_raw")
    for name in ("uncached_object", "uncached_bitcode"):
        check_figures(found[name], "latency_ns", "rate_msgs_per_s", "first_execution_us", "load_us")
    assert ("cell" in found) == (transport == "shm"), found
    if "cell" in found:
        check_figures(found["cell"], "call_ns", "process_call_ns", "flags_ns", "call_ratio_to_process")
    return found


def check_bulk(t, transport):
    by_network = transport.endswith(("tcp", "tls"))
    found = pinned_bench(t, "bulk", transport, "--runs", "2", "--sizes", "64KiB,3MiB", "--run-bytes", "4MiB")
    assert [(p["bytes"], p["rounds"]) for p in found["points"]] == [(65536, 64), (3 << 20, 1)], found["points"]
    ways, floors = ["call", "reply", "memcpy", "am"], ["memcpy", "am"]
    if by_network:
        ways.append("raw")
        floors.append("raw")
    for point in found["points"]:
        assert ("raw_gb_per_s" in point) == by_network, point
        check_figures(point, *(f"{way}_gb_per_s" for way in ways))
        check_figures(point, *(f"{of}_ratio_to_{to}" for of in ("call", "reply") for to in floors))
    return found


def check_mixed(t, transport):
    calls, long_us = 8, 2000
    found = bench(t, "mixed", transport, "--runs", "2", "--calls", str(calls), "--long-us", str(long_us),
                  "--phase-ms", "30")
    assert (found["calls"], found["long_us"], found["phase_ms"]) == (calls, long_us, 30) and found["rounds"] > 0, found
    for way in ("ifunc", "ifunc_threads", "am", "am_worker"):
        queue = found["first"][way]
        check_figures(queue, "first_us", "last_us", "largest_gap_us")
        assert queue["first_us"] < queue["last_us"], queue
        for phase in ("alone", "beside"):
            check_figures(found[phase][way], "median_us", "p99_us", "max_us", "calls_per_run")
            assert ("median_ratio_to_am" in found[phase][way]) == (way != "am"), found[phase]
    for what in ("without_calls", "one_client", "two_clients"):
        check_figures(found["rate"][what], "one_thread_calls_per_s", "two_threads_calls_per_s", "ratio")
        assert ("client_cpu" in found["rate"][what]) == (what != "without_calls"), found["rate"]


def test_the_increment_is_measured_beside_its_floor_over_shared_memory(t):
    check_tsi(t, "shm")


def test_the_increment_is_measured_beside_its_floor_over_tcp(t):
    check_tsi(t, "tcp")


def test_the_encrypted_increment_is_measured_beside_the_plain_one(t):
    found = check_tsi(t, "tls")
    check_figures(found["plain"], "latency_ns", "rate_msgs_per_s", "single_rate_msgs_per_s")
    check_figures(found["cached"], "latency_ratio_to_plain", "rate_ratio_to_plain", "single_rate_ratio_to_plain")


def test_large_payloads_are_measured_encrypted_plain_and_beside_the_cipher_alone(t):
    for point in check_bulk(t, "tls")["points"]:
        check_figures(point, *(f"{way}_gb_per_s" for way in ("aes", "plain_call", "plain_reply")))
        check_figures(point, "call_ratio_to_plain", "reply_ratio_to_plain")


def test_signatures_handshakes_and_floods_are_measured(t):
    result = t.ifunc("bench", "trust", "--runs", "2", "--samples", "3", "--phase-ms", "50", "--json", seconds=100)
    assert result.code == 0, result
    found = json.loads(result.out)
    assert (found["bench"], found["runs"]) == ("trust", 2) and found["calls"] > 0, found
    for name in ("unsigned", "signed"):
        check_figures(found[name], "call_us", "first_execution_us")
    for name in ("quiet", "flood_elsewhere", "flood_here"):
        check_figures(found[name], "median_us", "p99_us")
    check_figures(found, "connections_per_s", "handshake_cpu_us", "flood_per_s", "flood_ratio_to_quiet",
                  "flood_ratio_to_elsewhere")


def test_the_increment_is_measured_beside_its_floor_through_ucx(t):
    check_tsi(t, "ucx-shm")
    check_tsi(t, "ucx-tcp")


def test_large_payloads_are_measured_over_shared_memory(t):
    check_bulk(t, "shm")


def test_large_payloads_are_measured_over_tcp(t):
    check_bulk(t, "tcp")


def test_large_payloads_are_measured_through_ucx(t):
    check_bulk(t, "ucx-shm")
    check_bulk(t, "ucx-tcp")


def test_long_calls_are_measured_beside_small_ones_over_shared_memory_and_tcp(t):
    check_mixed(t, "shm")
    check_mixed(t, "tcp")


def test_long_calls_are_measured_beside_small_ones_encrypted_and_through_ucx(t):
    check_mixed(t, "tls")
    check_mixed(t, "ucx-shm")
    check_mixed(t, "ucx-tcp")


def test_a_queue_of_long_calls_that_would_take_minutes_is_refused(t):
    result = t.ifunc("bench", "mixed", "--calls", "1000", "--long-us", "100000")
    assert result.code == 1 and "the queue takes 100000 ms when it may take 30000" in result.err, result


def test_chases_and_searches_agree_through_ucx(t):
    for transport in ("ucx-shm", "ucx-tcp"):
        for name, options in [("dapc", ["--servers", "2", "--depth", "9", "--run-ms", "2", "--shard", "64"]),
                              ("graph", ["--servers", "2", "--scale", "6", "--searches", "1"])]:
            result = t.ifunc("bench", name, "--transport", transport, "--loopback", "--runs", "2", *options, "--json",
                             seconds=100)
            assert result.code == 0, (name, transport, result)
            found = json.loads(result.out)
            assert (found["bench"], found["transport"]) == (name, transport) and "way" not in found, found


def test_sizes_that_cannot_be_measured_are_exit_code_2(t):
    for size in ["0", "8", "1TiB", "large"]:
        result = t.ifunc("bench", "bulk", "--sizes", size)
        assert result.code == 2 and "--sizes" in result.err, (size, result)
