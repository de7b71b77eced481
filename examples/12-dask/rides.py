#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Questions about rides that the workers of a Dask cluster hold: by Dask's own tasks, and by functions sent to the partitions.

    rides.py [--rows N] [--partitions N] [--workers N] [--rounds N] [--json] [--picture FILE]

Both answer the same five questions, in one run, interleaved; the answers are compared. What moved between the processes is counted:
by the kernel for Dask's connections (all of the loopback interface), and by the workers for rows that ifuncs fetched.
"""

import argparse
import json
import pathlib
import statistics
import time

import distributed
import numpy as np
import pandas as pd
import threechains as tc
import threechains.dask

CITIES = 1000


@tc.ifunc
def income(fare: threechains.dask.column("fare", np.float64)) -> float:
    total = 0.0
    for one in fare:
        total += one
    return total


@tc.ifunc
def add(a: float, b: float) -> float:
    return a + b


def rides(seed, rows):
    random = np.random.default_rng(seed)
    return pd.DataFrame({"city": random.integers(0, CITIES, rows), "fare": random.integers(0, 400, rows) / 4})


def income_here(frame):
    return float(frame.fare.sum())


class Questions:
    """Each is a pair: Dask's way, and ours. Small partitions are held in place for ours (threechains.dask.hold)."""

    def __init__(self, client, frame, small, held, first):
        self._client, self._frame, self._small, self._held, self._first = client, frame, small, held, first

    def one_partition(self):
        return (lambda: self._client.submit(income_here, self._small[0], pure=False).result(),
                lambda: self._first.map(income)[0].result())

    def small_partitions(self):
        return (lambda: self._client.gather(self._client.map(income_here, self._small, pure=False)),
                lambda: [future.result() for future in self._held.map(income)])

    def sum_of_all_rows(self):
        return (lambda: float(self._frame.fare.sum().compute()),
                lambda: threechains.dask.reduce(income, add, self._frame).result())

    def sums_by_city(self):
        return (lambda: in_order(self._frame.groupby("city").fare.sum().compute()), lambda: self._incomes(combine=add))

    def any_function_by_city(self):
        """Which needs all rows of a city in one place, as who asks does not say how two of its answers become one."""
        return (lambda: in_order(self._frame.groupby("city").fare.apply(np.sum, meta=("fare", float)).compute()), self._incomes)

    def _incomes(self, **options):
        answers = threechains.dask.shuffle_reduce(income, self._frame, key="city", **options)
        return in_order(pd.concat(self._client.gather(answers)).income)


def in_order(column):
    return column.sort_index().tolist()


def loopback_bytes():
    line = next(line for line in pathlib.Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def fetched_bytes(client):
    return sum(client.run(lambda dask_worker: dask_worker.plugins["threechains"].fetched_bytes).values())


def measured(client, ask):
    fetched, before, begin = fetched_bytes(client), loopback_bytes(), time.perf_counter()
    answer = ask()
    seconds, moved = time.perf_counter() - begin, loopback_bytes() - before
    return answer, seconds * 1e3, moved + fetched_bytes(client) - fetched


def same(a, b):
    return np.allclose(a, b)


def asked(client, questions, rounds):
    """For each question and way: milliseconds and bytes of each round."""
    results = {}
    for name in ("one_partition", "small_partitions", "sum_of_all_rows", "sums_by_city", "any_function_by_city"):
        ways = dict(zip(("dask", "ifunc"), getattr(questions, name)()))
        assert same(*(ask() for ask in ways.values())), f"{name}: the answers differ"
        taken = {way: [] for way in ways}
        for _ in range(rounds):
            for way, ask in ways.items():
                taken[way].append(measured(client, ask)[1:])
        results[name] = {way: {"ms": quartiles([ms for ms, _ in rounds_]), "bytes": int(statistics.median(size for _, size in rounds_))}
                         for way, rounds_ in taken.items()}
    return results


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return {"median": round(middle, 3), "low": round(low, 3), "high": round(high, 3)}


def draw(results, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    labels = {"one_partition": "one\npartition", "small_partitions": "each of the\nsmall partitions", "sum_of_all_rows": "sum of\nall rows",
              "sums_by_city": "sums\nby city", "any_function_by_city": "any function\nby city"}
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    for panel, title, value in ((panels[0], "milliseconds", lambda of: of["ms"]["median"]),
                                (panels[1], "bytes between processes", lambda of: of["bytes"])):
        for shift, way, label in ((-0.2, "dask", "Dask's tasks"), (0.2, "ifunc", "functions sent to the partitions")):
            panel.bar([place + shift for place in range(len(labels))], [value(results[name][way]) for name in labels], 0.38, label=label)
        panel.set_yscale("log")
        panel.set_title(title)
        panel.set_xticks(range(len(labels)), labels.values())
    panels[1].legend(loc="upper left")  # where both bars are short
    figure.savefig(path, dpi=120)


def show(results):
    print(f"{'':22}{'Dask, ms':>22}{'ifuncs, ms':>22}{'ratio':>8}{'Dask, bytes':>14}{'ifuncs, bytes':>14}")
    for name, by_way in results.items():
        times = [f"{way['ms']['median']:.2f} ({way['ms']['low']:.2f}, {way['ms']['high']:.2f})" for way in by_way.values()]
        ratio = by_way["dask"]["ms"]["median"] / by_way["ifunc"]["ms"]["median"]
        sizes = [f"{way['bytes']:,}" for way in by_way.values()]
        print(f"{name.replace('_', ' '):22}{times[0]:>22}{times[1]:>22}{ratio:8.1f}{sizes[0]:>14}{sizes[1]:>14}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--partitions", type=int, default=20, help="of the data frame")
    parser.add_argument("--small", type=int, default=1000, help="small partitions")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--picture", metavar="FILE", help="draws the results (needs matplotlib)")
    options = parser.parse_args()

    import dask.dataframe as dd

    with distributed.LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=":0") as cluster, \
            distributed.Client(cluster) as client:
        client.register_plugin(threechains.dask.Nodes())
        frame = dd.from_map(rides, range(options.partitions), rows=options.rows // options.partitions).persist()
        small = client.map(rides, range(options.small), rows=100, pure=False)
        distributed.wait([frame, small])
        with threechains.dask.hold(small) as held, threechains.dask.hold(small[:1]) as first:
            results = asked(client, Questions(client, frame, small, held, first), options.rounds)
    if options.picture:
        draw(results, options.picture)
    if options.json:
        print(json.dumps({"rows": options.rows, "partitions": options.partitions, "small_partitions": options.small,
                          "workers": options.workers, "rounds": options.rounds, "questions": results}, indent=1))
    else:
        show(results)


if __name__ == "__main__":
    main()
