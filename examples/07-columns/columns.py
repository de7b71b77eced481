#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Filters and aggregates go to a node that holds columns; only the answers travel.

    columns.py [--rows N] [--json] [--without-dask]

A process holds a table of orders (an Arrow file, or NumPy's own when pyarrow is not installed). The same three
questions are answered in three ways, in one run, interleaved: by functions sent to the node; by fetching the columns
and computing here; and by tasks of Dask, whose worker holds the same columns in its memory.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import threechains as tc

COLUMNS = {"price": np.float64, "quantity": np.int32, "region": np.int8}
REGIONS = 8

FETCH = """
#include <threechains/ifunc.h>
void fetch_main(void *payload, size_t size, void *target_args) {
  (void)size, (void)target_args;
  size_t bytes = 0;
  void *column = tc_data((const char *)payload, &bytes);
  if (!column) { tc_fail(1, "no such column"); return; }
  tc_reply(column, bytes);
}
"""


@tc.ifunc
def revenue_above(limit: float, price: tc.data("price", np.float64), quantity: tc.data("quantity", np.int32)):
    """How many orders cost more than `limit` each, and what they brought in."""
    count, total = 0, 0.0
    for i in range(len(price)):
        if price[i] > limit:
            count += 1
            total += price[i] * quantity[i]
    return count, total


@tc.ifunc
def revenue_by_region(price: tc.data("price", np.float64), quantity: tc.data("quantity", np.int32),
                      region: tc.data("region", np.int8), totals: tc.out(np.float64, REGIONS)):
    for i in range(len(price)):
        totals[region[i]] += price[i] * quantity[i]


@tc.ifunc
def dearest(price: tc.data("price", np.float64)):
    best = 0
    for i in range(len(price)):
        if price[i] > price[best]:
            best = i
    return best, price[best]


# The same questions in NumPy, for data that is at hand.
def local_above(table, limit):
    chosen = table["price"] > limit
    return int(chosen.sum()), float((table["price"][chosen] * table["quantity"][chosen]).sum())


def local_by_region(table):
    return np.bincount(table["region"], weights=table["price"] * table["quantity"], minlength=REGIONS)


def local_dearest(table):
    best = int(np.argmax(table["price"]))
    return best, float(table["price"][best])


def write_table(directory, rows):
    """A file with the columns; Arrow's format when pyarrow is there."""
    random = np.random.default_rng(7)
    table = {"price": random.gamma(2.0, 20.0, rows), "quantity": random.integers(1, 9, rows, np.int32),
             "region": random.integers(0, REGIONS, rows, np.int8)}
    try:
        import pyarrow as pa
    except ImportError:
        path = os.path.join(directory, "orders.npz")
        np.savez(path, **table)
        return path
    path = os.path.join(directory, "orders.arrow")
    batch = pa.record_batch([pa.array(column) for column in table.values()], names=list(table))
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return path


def read_table(path):
    """The columns as arrays: mapped where the file's format allows it, and not copied."""
    if path.endswith(".npz"):
        with np.load(path) as file:
            return {name: file[name] for name in COLUMNS}
    import pyarrow as pa

    batch = pa.ipc.open_file(pa.memory_map(path)).get_batch(0)
    return {name: batch.column(name).to_numpy(zero_copy_only=True) for name in COLUMNS}


def serve(path, connection):
    """The process that has the data."""
    with tc.Node(data=read_table(path)) as node:
        connection.send(node.address)
        connection.recv()


def same(left, right):
    return np.allclose(np.asarray(left, dtype=float), np.asarray(right, dtype=float))


def ask_ifuncs(cluster):
    return {"above": lambda: cluster.submit(revenue_above, 100.0).result(),
            "by_region": lambda: cluster.submit(revenue_by_region).result(),
            "dearest": lambda: cluster.submit(dearest).result()}


def ask_by_fetching(cluster):
    fetch = tc.ifunc.from_c(FETCH)

    def table(*names):
        futures = {name: cluster.submit(fetch, name + "\0") for name in names}
        return {name: future.result().array(COLUMNS[name]) for name, future in futures.items()}

    return {"above": lambda: local_above(table("price", "quantity"), 100.0),
            "by_region": lambda: local_by_region(table("price", "quantity", "region")),
            "dearest": lambda: local_dearest(table("price"))}


def ask_dask(client, path):
    held = client.submit(read_table, path)
    held.result()
    return {"above": lambda: client.submit(local_above, held, 100.0, pure=False).result(),
            "by_region": lambda: client.submit(local_by_region, held, pure=False).result(),
            "dearest": lambda: client.submit(local_dearest, held, pure=False).result()}


def start_dask():
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError:
        print("dask.distributed is not installed (pip install 'dask[distributed]'): measured without", file=sys.stderr)
        return None
    return Client(LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None))


def measure(ways, rounds):
    """Milliseconds by question and way: medians and quartiles. Checks that all ways agree."""
    samples = {question: {way: [] for way in ways} for question in next(iter(ways.values()))}
    for i in range(rounds + 1):
        for question, by_way in samples.items():
            answers = []
            for way, times in by_way.items():
                start = time.perf_counter()
                answers.append(ways[way][question]())
                if i:  # the first round carries code, and warms
                    times.append((time.perf_counter() - start) * 1e3)
            if not all(same(answers[0], answer) for answer in answers[1:]):
                raise AssertionError(f"{question}: the answers differ: {answers}")
    def summary(times):
        q1, median, q3 = statistics.quantiles(times, n=4)
        return {"median_ms": round(median, 3), "q1_ms": round(q1, 3), "q3_ms": round(q3, 3)}
    return {question: {way: summary(times) for way, times in by_way.items()} for question, by_way in samples.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--without-dask", action="store_true")
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")  # a fork would inherit UCX
    dask = None
    with tempfile.TemporaryDirectory() as directory:
        path = write_table(directory, options.rows)
        here, there = spawn.Pipe()
        holder = spawn.Process(target=serve, args=(path, there), daemon=True)
        holder.start()
        try:
            with tc.Cluster([here.recv()]) as cluster:
                ways = {"ifunc": ask_ifuncs(cluster), "fetch": ask_by_fetching(cluster)}
                dask = None if options.without_dask else start_dask()
                if dask is not None:
                    ways["dask"] = ask_dask(dask, path)
                result = {"rows": options.rows, "bytes": os.path.getsize(path), "file": os.path.basename(path),
                          "questions": measure(ways, options.rounds)}
        finally:
            if dask is not None:
                dask.close()
            here.send("end")
            holder.join(10)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    size = f"{result['bytes'] / 1e6:.0f} MB"
    print(f"{result['rows']} rows, {size} in {result['file']}; milliseconds, median (quartiles)")
    for question, by_way in result["questions"].items():
        print(f"  {question}")
        for way, times in by_way.items():
            print(f"    {way:<6} {times['median_ms']:>10.3f} ({times['q1_ms']}, {times['q3_ms']})")


if __name__ == "__main__":
    main()
