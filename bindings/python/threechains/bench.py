# SPDX-License-Identifier: Apache-2.0
"""`python -m threechains.bench [--json] [--without-dask]`: what a call and a new function cost, beside others.

Round trips of the same work (one number plus one, in another process on this machine), in one run, interleaved: an
ifunc over shared memory, multiprocessing.Pool.apply, a task of concurrent.futures.ProcessPoolExecutor, and a task of
Dask's local cluster (when `distributed` is installed). This program has one CPU and whoever answers another one, as in
all our benchmarks. Then one megabyte there and one back, beside memcpy. Then the first use of a new Python function,
from its decorator to its first answer, in a fresh process (cold) and in this one (warm).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import threechains as tc

INCREMENT = """
#include <threechains/ifunc.h>
void increment_main(void *payload, size_t size, void *target_args) {
  (void)target_args;
  if (size != sizeof(double)) { tc_fail(1, "the payload is no double"); return; }
  *(double *)payload += 1;
  tc_reply(payload, size);
}
"""
LARGE = """
#include <threechains/ifunc.h>
static char megabyte[1000000];
void large_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)target_args;
  tc_reply(megabyte, size == sizeof megabyte ? 1 : sizeof megabyte);
}
"""
_MEGABYTE = 1_000_000
_ROUNDS = 12
_COLD = """
import time, numpy as np, threechains as tc
with tc.LocalCluster(1) as cluster:
    start = time.perf_counter()
    @tc.ifunc
    def fresh(x: np.float64) -> np.float64:
        return x * 1.5
    assert cluster.submit(fresh, 2.0).result() == 3.0
    print(time.perf_counter() - start)
"""


def increment(x: float) -> float:
    return x + 1


def _spread(seconds: list[float], unit: float) -> dict[str, float]:
    """Median and quartiles."""
    low, median, high = (q / unit for q in statistics.quantiles(seconds, n=4))
    return {"median": round(median, 2), "q1": round(low, 2), "q3": round(high, 2), "samples": len(seconds)}


def _time(call: Callable[[], Any], count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


class _Apart:
    """While this lasts, processes that are started run on one CPU, and this program on another one once it says so.

    Where the scheduler puts the two ends of a call decides more than what is measured: --unpinned leaves it to it.
    """

    def __init__(self, wanted: bool) -> None:
        self.all = os.sched_getaffinity(0)
        self.pinned = wanted and len(self.all) > 1

    def __enter__(self) -> _Apart:
        if self.pinned:
            os.sched_setaffinity(0, {sorted(self.all)[1]})
        return self

    def move_away(self) -> None:
        if self.pinned:
            self._move({min(self.all)})

    def __exit__(self, *_: object) -> None:
        self._move(self.all)

    def _move(self, cpus: set[int]) -> None:
        for thread in os.listdir("/proc/self/task"):
            try:
                os.sched_setaffinity(int(thread), cpus)
            except ProcessLookupError:
                pass  # it has ended


def round_trips(with_dask: bool, pin: bool, rounds: int) -> dict[str, Any]:
    """Microseconds from submit to result."""
    import struct

    one = struct.pack("d", 1.0)
    ifunc = tc.ifunc.from_c(INCREMENT)
    ways: dict[str, tuple[Callable[[], Any], int]] = {}
    dask = None
    # Workers that are not forked: a fork would inherit UCX.
    spawn = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn)
    with _Apart(pin) as apart, tc.LocalCluster(1) as cluster, spawn.Pool(1) as plain, pool:
        ways["ifunc"] = (lambda: cluster.submit(ifunc, one).result(), 2000)
        ways["pool_apply"] = (lambda: plain.apply(increment, (1.0,)), 500)
        ways["process_pool"] = (lambda: pool.submit(increment, 1.0).result(), 200)
        if with_dask:
            try:
                from dask.distributed import Client, LocalCluster

                dask = Client(LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None))
                ways["dask"] = (lambda: dask.submit(increment, 1.0, pure=False).result(), 50)
            except ImportError:
                print("dask.distributed is not installed: pip install 'dask[distributed]'", file=sys.stderr)
        try:
            samples: dict[str, list[float]] = {name: [] for name in ways}
            for call, _ in ways.values():
                _time(call, 10)
            apart.move_away()
            for _ in range(rounds):
                for name, (call, count) in ways.items():
                    samples[name] += _time(call, count)
        finally:
            if dask is not None:
                dask.close()
    measured: dict[str, Any] = {name: _spread(seconds, 1e-6) for name, seconds in samples.items()}
    base = measured["ifunc"]["median"]
    measured["pinned"] = apart.pinned
    measured["times_faster"] = {name: round(measured[name]["median"] / base, 1) for name in ways if name != "ifunc"}
    return measured


def megabytes(pin: bool, rounds: int) -> dict[str, Any]:
    """Gigabytes a second of a call with a megabyte, of an answer with one, and of copying one in this process."""
    import numpy as np

    ifunc = tc.ifunc.from_c(LARGE)
    source = np.arange(_MEGABYTE, dtype=np.uint8)
    landing = np.empty_like(source)
    with _Apart(pin) as apart, tc.LocalCluster(1) as cluster:
        ways: dict[str, Callable[[], Any]] = {
            "memcpy": lambda: np.copyto(landing, source),
            "there": lambda: cluster.submit(ifunc, source).result(),
            "back": lambda: cluster.submit(ifunc, b"1").result(),
        }
        samples: dict[str, list[float]] = {name: [] for name in ways}
        for call in ways.values():
            _time(call, 10)
        apart.move_away()
        for _ in range(rounds):
            for name, call in ways.items():
                samples[name] += _time(call, 100)
    return {name: _spread([_MEGABYTE / taken for taken in seconds], 1e9) for name, seconds in samples.items()}


def first_use(count: int = 9) -> dict[str, Any]:
    """Milliseconds from a decorator to the first answer."""
    import numpy as np

    cold = [float(subprocess.run([sys.executable, "-c", _COLD], capture_output=True, text=True, check=True).stdout)
            for _ in range(3)]
    warm, processor = [], []
    with tc.LocalCluster(1) as cluster:
        for i in range(count + 1):
            start, used = time.perf_counter(), os.times()

            @tc.ifunc
            def fresh(x: np.float64) -> np.float64:
                return x * (i + 1)

            assert cluster.submit(fresh, 2.0).result() == 2.0 * (i + 1)
            if i:
                warm.append(time.perf_counter() - start)
                processor.append(sum(os.times()[:4]) - sum(used[:4]))
    return {"cold_ms": _spread(cold, 1e-3), "warm_ms": _spread(warm, 1e-3),
            "warm_processor_ms": _spread(processor, 1e-3)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m threechains.bench", description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--without-dask", action="store_true")
    parser.add_argument("--unpinned", action="store_true", help="let the scheduler choose the CPUs")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of 2000 calls each (default: %(default)s)")
    parser.add_argument("--without-numba", action="store_true", help="no first uses of Python functions")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "command": "python -m threechains.bench " + " ".join(sys.argv[1:]),
        "machine": {"cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version(),
                    "threechains": tc.__version__},
        "round_trip_us": round_trips(not options.without_dask, not options.unpinned, options.rounds),
        "megabyte_gb_per_s": megabytes(not options.unpinned, options.rounds),
    }
    if not options.without_numba:
        result["first_use"] = first_use()
    if options.json:
        print(json.dumps(result, indent=2))
        return
    trips = result["round_trip_us"]
    print("round trip, microseconds: median (quartiles)")
    for name in ("ifunc", "pool_apply", "process_pool", "dask"):
        if name in trips:
            times = f"  {trips['times_faster'][name]} times ours" if name in trips["times_faster"] else ""
            print(f"  {name:<14} {trips[name]['median']:>9.1f} ({trips[name]['q1']}, {trips[name]['q3']}){times}")
    print("one megabyte, GB/s")
    for name, value in result["megabyte_gb_per_s"].items():
        print(f"  {name:<14} {value['median']:>9.1f} ({value['q1']}, {value['q3']})")
    for name, value in result.get("first_use", {}).items():
        print(f"first use, {name:<18} {value['median']:>8.1f} ({value['q1']}, {value['q3']})")


if __name__ == "__main__":
    main()
