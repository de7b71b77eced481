# SPDX-License-Identifier: Apache-2.0
"""Partitions that are held in place are reached by calls that do not pass Dask."""

import os
import pickle
import signal
import time

import numpy as np
import pytest
import threechains as tc

pytest.importorskip("numba", reason="the extra [numba] is not installed")
distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")

import threechains.dask
from threechains import _dask, _dask_held

SECONDS = 30
column, partition = threechains.dask.column, threechains.dask.partition


@tc.ifunc
def total(values: partition(np.float64), by: float = 1.0) -> float:
    result = 0.0
    for value in values:
        result += value * by
    return result


@tc.ifunc
def ends(values: partition(np.float64), answer: tc.out(np.float64, 2)) -> None:
    answer[0], answer[1] = values[0], values[-1]


@tc.ifunc
def dot(weights: tc.array(np.float64), fare: column("fare", np.float64), riders: column("riders", np.int64)) -> tuple[float, int]:
    worth, count = 0.0, 0
    for i in range(len(fare)):
        worth += fare[i] * weights[i]
        count += riders[i]
    return worth, count


@tc.ifunc
def counts_down(values: partition(np.float64), steps: int) -> float:
    state = 1
    for _ in range(steps):
        state = (state * 1103515245 + 12345) % 2147483648
    return values[0] + (state == 7)  # which it is not, but no compiler knows


@tc.ifunc
def reads_late(values: partition(np.float64), steps: int) -> float:
    state = 1
    for _ in range(steps):
        state = (state * 1103515245 + 12345) % 2147483648
    return values[(state >> 20) & 1]


@pytest.fixture(scope="module")
def client(home):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as workers, \
            distributed.Client(workers) as made:
        made.register_plugin(threechains.dask.Nodes())
        yield made


@pytest.fixture
def holder(home):
    """Of one worker, without Dask."""
    nodes = _dask.WorkerNodes(_dask.new_key(), "127.0.0.1", "a worker")
    yield nodes.holder()
    nodes.close()


def results(futures):
    return [future.result() for future in futures]


def test_a_function_goes_to_each_partition_in_order(client):
    arrays = [np.arange(float(i)) for i in range(1, 60)]
    with threechains.dask.hold(client.scatter(arrays, hash=False), client=client) as held:
        assert len(held) == 59 and "59 partitions at 2 workers" in repr(held)
        assert results(held.map(total)) == [array.sum() for array in arrays]
        assert results(held.map(total, by=2.0)) == [2 * array.sum() for array in arrays]
        assert [answer.tolist() for answer in results(held.map(ends))] == [[0.0, i - 1.0] for i in range(1, 60)]


def test_the_columns_of_tables_are_held(client):
    pandas = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
    frame = pandas.DataFrame({"fare": [1.0, 2.0], "city": ["Ulm", "Bonn"], "riders": [1, 2]})
    for tables in ([frame, frame.assign(fare=0.5)], [pa.table(frame.to_dict("list")), pa.table(frame.assign(fare=0.5).to_dict("list"))]):
        with threechains.dask.hold(client.scatter(tables, hash=False)) as held:
            assert results(held.map(dot, np.array([1.0, 10.0]))) == [(21.0, 3), (5.5, 3)]


def test_the_partitions_of_a_collection_are_held_until_they_are_given_back(client):
    array = pytest.importorskip("dask.array", reason="Dask's arrays are not installed")
    held = threechains.dask.hold(array.ones(100, chunks=10) * 2)
    assert results(held.map(total)) == [20.0] * 10
    held.close()
    end = time.monotonic() + SECONDS
    while any(client.run(lambda dask_worker: len(dask_worker.plugins["threechains"]._nodes.holder()._held)).values()):
        assert time.monotonic() < end
        time.sleep(0.01)
    with pytest.raises(tc.Error):
        held.map(total)


def test_partitions_that_do_not_fit_are_refused_before_anything_is_sent(client):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"fare": [1.0, 2.0], "city": ["Ulm", "Bonn"], "riders": [1.5, 2.0]})
    cases = [(np.arange(3), total, "partition 1: is an array of int64 when the function takes float64: annotate it with int64"),
             (np.ones(3), dot, "partition 0 has no column 'fare' of plain numbers without nulls; it has none, as it is an array"),
             (frame, total, "partition 1 is a table when the function takes an array"),
             (frame, dot, "partition 0 has no column 'fare'")]
    for given, kernel, words in cases:
        with threechains.dask.hold(client.scatter([np.ones(2), given], hash=False)) as held:
            with pytest.raises(tc.ArgumentTypeError) as raised:
                held.map(kernel, *([np.ones(2)] if kernel is dot else []))
            assert words in str(raised.value)
    with threechains.dask.hold(client.scatter([frame], hash=False)) as held:
        with pytest.raises(tc.ArgumentTypeError, match="column 'riders' is float64 when the function takes int64"):
            held.map(dot, np.ones(2))
        with pytest.raises(tc.ArgumentTypeError, match="was loaded or unpickled"):
            held.map(pickle.loads(pickle.dumps(never_compiled)))
    with threechains.dask.hold(client.scatter([frame.drop(columns="fare")], hash=False)) as held:
        with pytest.raises(tc.ArgumentTypeError, match="partition 0 has no column 'fare' of plain numbers without nulls; it has 'riders'"):
            held.map(dot, np.ones(2))
    with pytest.raises(tc.ArgumentTypeError, match=r"shape \(2, 2\).*reshape"):
        threechains.dask.hold(client.scatter([np.ones((2, 2))], hash=False))
    with pytest.raises(tc.ArgumentValueError, match="no partitions"):
        threechains.dask.hold([], client=client)


@tc.ifunc
def never_compiled(fare: column("fare", np.float64)) -> float:
    return fare[0]


def test_a_call_that_fails_fails_its_future_alone(client):
    @tc.ifunc
    def positive(values: partition(np.float64)) -> float:
        if values[0] < 0:
            raise tc.Failure(7, "below zero")
        return values[0]

    with threechains.dask.hold(client.scatter([np.full(2, float(i)) for i in (1, -1, 3)], hash=False)) as held:
        futures = held.map(positive)
        assert (futures[0].result(), futures[2].result()) == (1.0, 3.0)
        with pytest.raises(tc.RemoteError, match="below zero") as raised:
            futures[1].result()
        assert (raised.value.code, raised.value.ifunc) == (7, "positive")


def test_more_arrays_than_the_table_has_rows_are_held(holder):
    count = 3 * _dask_held._FIRST_ROWS
    arrays = [np.full(1, float(i)) for i in range(count)]
    numbers = holder.hold("a", arrays[:10]) + holder.hold("b", arrays)
    assert len(set(numbers)) == count + 10
    rows = [number & _dask_held.ROW_MASK for number in numbers]
    table = holder._table.reshape(-1, 3)
    assert [table[row].tolist() for row in rows] == [[array.ctypes.data, 1, number] for number, array in zip(numbers, arrays[:10] + arrays)]
    holder.drop("b")
    assert [bool(address) for address in holder._table.reshape(-1, 3)[rows][:, 0]] == [True] * 10 + [False] * count
    assert len(holder.hold("c", arrays)) == count and len(holder._table) // 3 <= 4 * _dask_held._FIRST_ROWS


def test_a_row_that_holds_nothing_is_an_error_of_its_call(holder):
    from threechains import _dask_kernels

    (row,) = holder.hold("a", [np.ones(3)])
    with tc.Node() as node, tc.Cluster([holder.address], node=node) as cluster:
        sent = _dask_kernels.on_rows(total)
        assert cluster[0].submit(sent, 2.0, row).result() == 6.0
        holder.drop("a")
        for number in (row, row + 1, -1, 0, row & _dask_held.ROW_MASK, 1 << 40, row | _dask_held.ROW_MASK):
            with pytest.raises(tc.RemoteError, match="holds this partition no more"):
                cluster[0].submit(sent, 2.0, number).result()
        (other,) = holder.hold("b", [np.full(3, 5.0)])  # in the same row
        assert other != row and other & _dask_held.ROW_MASK == row & _dask_held.ROW_MASK
        with pytest.raises(tc.RemoteError, match="holds this partition no more"):
            cluster[0].submit(sent, 2.0, row).result()
        assert cluster[0].submit(sent, 2.0, other).result() == 30.0


def test_a_partition_is_given_back_only_after_the_calls_that_read_it(holder):
    from threechains import _dask_kernels

    array = np.full(2, 5.0)
    (row,) = holder.hold("a", [array])
    with tc.Node() as node, tc.Cluster([holder.address], node=node) as cluster:
        future = cluster[0].submit(_dask_kernels.on_rows(reads_late), 300_000_000, row)
        time.sleep(0.02)  # most often it runs by now
        holder.drop("a")
        array[:] = 9.0
        try:
            assert future.result() == 5.0
        except tc.RemoteError as error:  # it came later
            assert "holds this partition no more" in str(error)


def test_a_worker_that_dies_fails_its_calls_and_no_others(client):
    partitions = [client.submit(lambda i=i: np.full(4, float(i)), workers=[address], allow_other_workers=True, pure=False)
                  for i, address in enumerate(client.run(os.getpid))]
    with threechains.dask.hold(partitions) as held:
        victim = list(client.run(os.getpid).values())[0]
        os.kill(victim, signal.SIGKILL)
        futures = held.map(counts_down, 200_000_000)
        assert futures[1].result() == 1.0
        with pytest.raises(tc.Error) as raised:
            futures[0].result()
        assert raised.value.status == tc.Status.DISCONNECTED
    client.wait_for_workers(2, timeout=SECONDS)
    with threechains.dask.hold(partitions) as held:  # Dask has made the partition again
        assert results(held.map(total)) == [0.0, 4.0]
