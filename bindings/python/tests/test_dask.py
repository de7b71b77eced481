# SPDX-License-Identifier: Apache-2.0
"""Ifuncs go to the partitions that the workers of a Dask cluster hold. The workers are processes of their own."""

import concurrent.futures
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
import threechains as tc
from conftest import blocks_of

pytest.importorskip("numba", reason="the extra [numba] is not installed")
distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
dask = pytest.importorskip("dask")

import threechains.dask
from threechains import _dask

SECONDS = 30
NODES = threechains.dask.Nodes  # in a name of this module, so that its instances are pickled by reference


@tc.ifunc
def total(partition: threechains.dask.partition(np.float64), by: float = 1.0, plus: int = 0) -> float:
    result = 0.0
    for value in partition:
        result += value * by
    return result + plus


@tc.ifunc
def add(a: float, b: float) -> float:
    return a + b


@tc.ifunc
def positive(partition: threechains.dask.partition(np.float64)) -> float:
    if partition[0] < 0:
        raise tc.Failure(7, "the partition begins below zero")
    return partition[0]


@tc.ifunc
def counts_down(partition: threechains.dask.partition(np.float64), steps: int) -> float:
    state = 1
    for _ in range(steps):
        state = (state * 1103515245 + 12345) % 2147483648
    return partition[0] + (state < 0)


@tc.ifunc
def first_two(partition: threechains.dask.partition(np.float64), answer: tc.out(np.float64, 2)) -> None:
    answer[0] = partition[0]
    answer[1] = partition[1]


@tc.ifunc
def dot(other: tc.array(np.float64), partition: threechains.dask.partition(np.float64)) -> float:
    result = 0.0
    for i in range(len(other)):
        result += other[i] * partition[i]
    return result


@tc.ifunc
def weighted(fares: threechains.dask.column("fare", np.float64), tips: threechains.dask.column("tip", np.int64)) -> float:
    result = 0.0
    for i in range(len(fares)):
        result += fares[i] * tips[i]
    return result


@pytest.fixture(scope="module")
def workers(home):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0") as nodes:
        yield nodes


@pytest.fixture(scope="module")
def client(workers):
    with distributed.Client(workers) as made:
        made.register_plugin(NODES())
        yield made


def scattered(client, arrays):
    """Futures of one partition for each array, spread over the workers."""
    return client.scatter(arrays, hash=False)


def computed(client, place, address):
    """A future of a partition that one worker computes. (By a lambda, as workers would import this module for a function of it.)"""
    return client.submit(lambda: np.full(10, float(place)), workers=[address], pure=False)


def ramp(place, size=10):
    return np.full(size, float(place))


# ---- Partitions ---------------------------------------------------------------------------------------------


def test_a_list_of_futures_gives_a_future_for_each_partition_in_order(client):
    futures = threechains.dask.map(total, scattered(client, [ramp(i) for i in range(20)]))
    assert all(isinstance(future, distributed.Future) for future in futures)
    assert client.gather(futures) == [10.0 * i for i in range(20)]


def test_each_call_runs_where_its_partition_lies(client):
    partitions = scattered(client, [ramp(i) for i in range(8)])
    futures = threechains.dask.map(total, partitions, client=client)
    distributed.wait(futures, timeout=SECONDS)
    held, ran = client.who_has(partitions), client.who_has(futures)
    assert all(set(ran[future.key]) <= set(held[partition.key]) for future, partition in zip(futures, partitions))
    assert len({address for holders in ran.values() for address in holders}) == 2


def test_the_partitions_of_a_persisted_array_are_taken_in_its_order(client):
    array = pytest.importorskip("dask.array", reason="Dask's arrays are not installed")
    collection = client.persist(array.arange(60.0, chunks=10))
    assert client.gather(threechains.dask.map(total, collection)) == [float(np.arange(i, i + 10).sum()) for i in range(0, 60, 10)]


def test_the_partitions_of_a_data_frame_are_taken_as_they_are_and_after_what_is_still_to_be_done_with_them(client):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
    frames = pytest.importorskip("dask.dataframe", reason="Dask's data frames are not installed")
    frame = frames.from_pandas(pandas.DataFrame({"fare": np.arange(40.0), "tip": np.ones(40, np.int64)}), npartitions=20)
    persisted = frame.persist()
    sums = [float(2 * i + 2 * i + 1) for i in range(20)]
    assert client.gather(threechains.dask.map(weighted, frame)) == sums
    assert client.gather(threechains.dask.map(weighted, persisted)) == sums
    assert threechains.dask._partitions(client, persisted) == distributed.futures_of(persisted)  # nothing is done with them
    assert client.gather(threechains.dask.map(weighted, persisted[persisted.fare > 4])) == [0.0, 0.0, 5.0, *sums[3:]]
    assert client.gather(threechains.dask.map(total, persisted.fare)) == sums


def test_a_collection_that_is_not_persisted_is_computed_first(client):
    array = pytest.importorskip("dask.array", reason="Dask's arrays are not installed")
    assert client.gather(threechains.dask.map(total, array.ones(6, chunks=3) * 2)) == [6.0, 6.0]


def test_a_partition_with_strides_is_read_as_the_array_that_it_is(client):
    assert client.gather(threechains.dask.map(total, scattered(client, [np.arange(10.0)[::2]]))) == [20.0]


def test_partitions_of_pandas_are_tables_and_their_series_are_arrays(client):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
    frame = pandas.DataFrame({"fare": [1.5, 2.0], "city": ["Ulm", "Köln"], "tip": [2, 3]}, index=[7, 9])
    frames = scattered(client, [frame, frame.assign(fare=1.0)])
    assert client.gather(threechains.dask.map(weighted, frames)) == [9.0, 5.0]
    assert client.gather(threechains.dask.map(total, scattered(client, [frame["fare"]]))) == [3.5]


def test_partitions_that_are_arrow_tables_are_taken_by_their_columns(client):
    pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
    tables = [pa.table({"fare": [float(i), 2.0], "city": ["Ulm", None], "tip": [1, 1]}) for i in range(4)]
    assert client.gather(threechains.dask.map(weighted, scattered(client, tables))) == [2.0, 3.0, 4.0, 5.0]
    assert client.gather(threechains.dask.map(total, scattered(client, [pa.array([1.0, 2.5])]))) == [3.5]


def test_functions_that_were_loaded_and_columns_that_are_no_plain_arrays_are_called_as_well(client, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")

    @tc.ifunc
    def known(tips: threechains.dask.column("tip", np.int64, nulls=True), names: threechains.dask.column("city", str)) -> int:
        count = 0
        for i in range(len(tips)):
            if tips.is_valid(i) and names.equals(i, "Ulm"):
                count += 1
        return count

    tables = [pa.table({"tip": [1, None, 2], "city": ["Ulm", "Ulm", "Bonn"]}), pa.table({"tip": pa.array([None], pa.int64()), "city": ["Ulm"]})]
    assert client.gather(threechains.dask.map(known, scattered(client, tables))) == [1, 0]
    total.save(tmp_path / "total.ifunc")
    assert client.gather(threechains.dask.map(tc.ifunc.load(tmp_path / "total.ifunc"), scattered(client, [ramp(2)]))) == [20.0]


def test_a_nan_of_pandas_is_a_null_only_for_a_function_that_takes_nulls(client):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")

    @tc.ifunc
    def numbers(fares: threechains.dask.column("fare", np.float64)) -> tuple[int, int]:
        nans = 0
        for fare in fares:
            nans += np.isnan(fare)
        return len(fares), nans

    @tc.ifunc
    def nulls(fares: threechains.dask.column("fare", np.float64, nulls=True)) -> tuple[int, int]:
        count = 0
        for i in range(len(fares)):
            count += not fares.is_valid(i)
        return len(fares), count

    frames = scattered(client, [pandas.DataFrame({"fare": [1.0, np.nan, 2.0]})])
    for function in (numbers, nulls, pickle.loads(pickle.dumps(numbers))):
        assert client.gather(threechains.dask.map(function, frames)) == [(3, 1)]


def test_no_partitions_give_no_futures(client):
    assert threechains.dask.map(total, [], client=client) == []


# ---- Arguments and answers ----------------------------------------------------------------------------------


def test_further_arguments_are_passed_by_place_and_by_name(client):
    partitions = scattered(client, [ramp(1), ramp(2)])
    assert client.gather(threechains.dask.map(total, partitions, 2.0)) == [20.0, 40.0]
    assert client.gather(threechains.dask.map(total, partitions, 2.0, 5)) == [25.0, 45.0]
    assert client.gather(threechains.dask.map(total, partitions, plus=5, by=3.0)) == [35.0, 65.0]
    assert client.gather(threechains.dask.map(dot, partitions, [1.0, 2.5])) == [3.5, 7.0]


def test_an_answer_is_an_array_of_its_own(client):
    answer = threechains.dask.map(first_two, scattered(client, [np.array([3.0, 4.0, 5.0])]))[0].result(SECONDS)
    assert answer.tolist() == [3.0, 4.0]


def test_the_futures_are_known_to_all_that_dask_has_for_futures(client):
    futures = threechains.dask.map(total, scattered(client, [ramp(i) for i in range(4)]))
    done = [future.result() for future in distributed.as_completed(futures, timeout=SECONDS)]
    assert sorted(done) == client.gather(futures) == [0.0, 10.0, 20.0, 30.0]
    assert dask.compute(dask.delayed(sum)(futures)) == (60.0,)
    assert client.submit(sum, futures).result(SECONDS) == 60.0


def test_calls_at_the_same_time_in_one_worker_each_see_their_own_partition(client):
    partitions = scattered(client, [ramp(i, 1) for i in range(100)])
    assert client.gather(threechains.dask.map(counts_down, partitions, 100_000)) == [float(i) for i in range(100)]


def test_each_node_of_a_worker_loads_the_code_of_an_ifunc_once(client):
    def loads(dask_worker):
        return [one.node.stat("code-loads") for one in dask_worker.plugins["threechains"]._nodes._all]

    partitions = scattered(client, [ramp(i) for i in range(10)])
    before = client.run(loads)
    for _ in range(5):
        client.gather(threechains.dask.map(total, partitions))
    for worker, after in client.run(loads).items():
        assert sum(after) - sum(before[worker]) <= len(after)


# ---- Failures -----------------------------------------------------------------------------------------------


def test_the_partition_that_fails_fails_its_future_alone(client):
    arrays = [ramp(i) for i in range(100)]
    arrays[42] = ramp(-1)
    futures = threechains.dask.map(positive, scattered(client, arrays))
    distributed.wait(futures, timeout=SECONDS)
    error = futures[42].exception()
    assert type(error) is tc.RemoteError and (error.code, error.ifunc) == (7, "positive")
    assert "the partition begins below zero" in str(error) and "Dask worker tcp://" in str(error)
    assert [future.result() for future in futures if future is not futures[42]] == [float(i) for i in range(100) if i != 42]


@pytest.mark.parametrize("partition, words", [
    (np.arange(10), "is an array of float64, and data 'partition' is int64 of shape (10,)"),
    (np.ones((2, 3)), "give the data as .reshape(-1)"),
    ([1.0, 2.0], "the partition is list, which is neither an array nor a table"),
])
def test_a_partition_of_another_type_fails_its_future_alone(client, partition, words):
    # (A list that is scattered would be many partitions.)
    futures = threechains.dask.map(total, [*scattered(client, [ramp(1)]), client.submit(lambda: partition, pure=False)])
    error = futures[1].exception(SECONDS)
    assert isinstance(error, tc.ArgumentTypeError) and words in str(error)
    assert futures[0].result(SECONDS) == 10.0


def test_an_array_where_a_table_is_wanted_and_the_reverse_are_told_what_to_write(client):
    pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
    error = threechains.dask.map(weighted, scattered(client, [ramp(1)]))[0].exception(SECONDS)
    assert isinstance(error, tc.ArgumentTypeError) and "threechains.dask.partition(float64)" in str(error)
    table = pa.table({"tip": [1]})
    error = threechains.dask.map(total, scattered(client, [table]))[0].exception(SECONDS)
    assert isinstance(error, tc.ArgumentTypeError) and "threechains.dask.column('NAME', DTYPE)" in str(error)
    error = threechains.dask.map(weighted, scattered(client, [table]))[0].exception(SECONDS)
    assert isinstance(error, tc.RemoteError) and "no column 'partition.fare'" in str(error)


def test_a_function_that_takes_no_partition_is_refused_with_what_to_write(client):
    @tc.ifunc
    def alone(x: float) -> float:
        return x

    @tc.ifunc
    def other(prices: tc.data("prices", np.float64), partition: threechains.dask.partition(np.float64)) -> float:
        return prices[0] + partition[0]

    for kernel, words in ((alone, "takes no partition: give it a parameter threechains.dask.partition(np.float64)"),
                          (other, "'prices' is tc.data('prices'), which the nodes of Dask workers do not have"),
                          (len, "is no ifunc"), (tc.Ifunc(total.bundle), "takes a payload, and no partition")):
        with pytest.raises(tc.ArgumentTypeError, match=".*") as raised:
            threechains.dask.map(kernel, [], client=client)
        assert words in str(raised.value)
    with pytest.raises(tc.ArgumentTypeError, match="no parameter 'times'"):
        threechains.dask.map(total, [], times=3, client=client)
    with pytest.raises(tc.ArgumentTypeError, match="'by'"):
        threechains.dask.map(total, [], by="three", client=client)


def test_a_function_that_could_write_to_the_memory_of_dask_is_refused(client):
    @tc.ifunc
    def could(prices: tc.data("partition", np.float64)) -> float:
        return prices[0]

    with pytest.raises(tc.ArgumentTypeError, match=r"annotate it with threechains\.dask\.partition\(np\.float64\)"):
        threechains.dask.map(could, [], client=client)
    with pytest.raises(tc.IfuncError, match="[Rr]ead-?only|immutable|modify"):
        @tc.ifunc
        def writes(prices: threechains.dask.partition(np.float64)) -> float:
            prices[0] = 1.0
            return prices[0]


def test_what_is_no_collection_and_no_client_is_refused(client):
    with pytest.raises(tc.ArgumentTypeError, match=r"collection has a ndarray .* client\.scatter"):
        threechains.dask.map(total, [ramp(1)], client=client)
    with pytest.raises(tc.ArgumentTypeError, match="client is of type str"):
        threechains.dask.map(total, [], client="tcp://127.0.0.1:8786")


def test_a_client_whose_workers_have_no_nodes_is_told_what_to_write(home):
    with distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as empty, \
            distributed.Client(empty, set_as_default=False) as stranger:
        with pytest.raises(tc.Error, match=r"have no nodes: write client\.register_plugin\(threechains\.dask\.Nodes\(\)\) first") as raised:
            threechains.dask.map(total, [], client=stranger)
        assert raised.value.status == tc.Status.NOT_FOUND


def test_a_node_that_could_not_start_is_reported_with_its_reason_by_the_first_use():
    plugin = NODES()
    plugin.setup(types.SimpleNamespace(address="tcp://192.0.2.1:4000"))  # an address that no host has
    with pytest.raises(tc.Error, match=r"Dask worker tcp://192\.0\.2\.1:4000 has no node.* at 192\.0\.2\.1: .+"):
        plugin._nodes.call(threechains.dask._code_of(total), (1.0, 0), ramp(1))


def test_a_task_waits_for_the_node_of_a_worker_that_has_just_joined(monkeypatch):
    worker = types.SimpleNamespace(address="tcp://127.0.0.1:4000", plugins={})
    monkeypatch.setattr(threechains.dask, "_PLUGIN_SECONDS", 0.05)
    with pytest.raises(tc.Error, match="has no node, 0.05 s after it was asked for one: write client.register_plugin"):
        threechains.dask._nodes_of(worker)
    monkeypatch.setattr(threechains.dask, "_PLUGIN_SECONDS", SECONDS)
    plugin = NODES()

    def join():
        plugin.setup(worker)
        worker.plugins["threechains"] = plugin

    threading.Timer(0.05, join).start()
    assert threechains.dask._nodes_of(worker).call(threechains.dask._code_of(total), (1.0, 0), ramp(1)) == 10.0
    plugin.teardown(worker)
    with pytest.raises(tc.Error, match="is closed, as the worker ends"):
        plugin._nodes.call(threechains.dask._code_of(total), (1.0, 0), ramp(1))


# ---- Trust --------------------------------------------------------------------------------------------------


def test_nodes_of_one_dask_cluster_know_each_other_and_a_node_with_another_key_cannot_connect(client):
    answered = client.run(threechains.dask._address_and_key)
    addresses, keys = [address for address, _ in answered.values()], {key for _, key in answered.values()}
    assert len(keys) == 1 and len(set(addresses)) == len(addresses)
    # Processes of one user trust each other where they meet on one host, so both come by the network.
    with _dask.node_of(keys.pop(), transport="tcp") as known, tc.Cluster(addresses, node=known) as nodes:
        assert nodes[0].transport == "tls"
    with tc.Node(key=key_file(_dask.new_key()), keyring="none", first_contact="remember", transport="tcp") as stranger:
        with pytest.raises(tc.Error, match="is not known here"):
            tc.Cluster(addresses[:1], node=stranger)


def key_file(key):
    path = pathlib.Path(os.environ["THREECHAINS_HOME"], "a-key")
    path.touch(0o600)
    path.write_text(key)
    return path


def test_the_key_is_in_no_file_and_in_no_representation(client, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plugin = NODES()
    _dask.node_of(plugin._key).close()
    assert list(tmp_path.iterdir()) == []
    assert plugin._key.split()[-1] not in repr(plugin) + str(vars(threechains.dask))


def test_a_client_calls_the_nodes_of_workers_by_shared_memory(client):
    with threechains.dask.connect(client) as nodes:
        assert len(nodes) == 2 and {node.transport for node in nodes} == {"shm"}


def test_a_second_registration_changes_nothing(client):
    before = client.run(threechains.dask._address_and_key)
    client.register_plugin(NODES())
    assert client.run(threechains.dask._address_and_key) == before


# ---- Workers come and go ------------------------------------------------------------------------------------


def test_a_worker_that_joins_late_has_a_node(client, workers):
    workers.scale(3)
    client.wait_for_workers(3, timeout=SECONDS)
    addresses = list(client.scheduler_info(n_workers=-1)["workers"])
    partitions = [computed(client, i, address) for i, address in enumerate(addresses)]
    futures = threechains.dask.map(total, partitions)
    assert client.gather(futures) == [0.0, 10.0, 20.0]
    with threechains.dask.connect(client) as nodes:
        assert len(set(nodes.addresses)) == 3


def test_when_a_worker_is_killed_its_partitions_are_computed_again_and_so_are_the_calls(client):
    partitions = client.map(lambda i: np.full(10, float(i)), range(30), pure=False)
    distributed.wait(partitions, timeout=SECONDS)
    futures = threechains.dask.map(counts_down, partitions, 5_000_000)
    victim = next(iter(client.run(os.getpid).values()))
    os.kill(victim, signal.SIGKILL)
    assert client.gather(futures) == [float(i) for i in range(30)]
    client.wait_for_workers(3, timeout=SECONDS)  # the nanny has started it again
    assert victim not in client.run(os.getpid).values()
    with threechains.dask.connect(client) as nodes:
        assert nodes.alive == [0, 1, 2]


def test_a_call_whose_partition_died_with_its_worker_fails_as_any_task_of_dask(client):
    lost = client.scatter([ramp(1)], hash=False)
    holder = client.who_has(lost)[lost[0].key][0]
    kept = computed(client, 2, next(address for address in client.run(os.getpid) if address != holder))
    distributed.wait(kept, timeout=SECONDS)
    futures = threechains.dask.map(counts_down, [*lost, kept], 200_000_000)
    os.kill(client.run(os.getpid)[holder], signal.SIGKILL)
    assert futures[1].result(SECONDS) == 2.0
    with pytest.raises(concurrent.futures.CancelledError):  # as Dask's futures do whose data is lost
        futures[0].result(SECONDS)


def test_partitions_that_dask_has_spilled_to_disk_are_read_again(client):
    def spill(dask_worker):
        while len(dask_worker.data.fast):
            dask_worker.data.evict()
        return len(dask_worker.data.slow)

    partitions = scattered(client, [ramp(i, 10_000) for i in range(8)])
    assert sum(client.run(spill).values()) >= 8
    assert client.gather(threechains.dask.map(total, partitions)) == [10_000.0 * i for i in range(8)]
    client.run(spill)
    with threechains.dask.hold(partitions) as held:
        client.run(spill)  # what is held stays in memory all the same
        assert [future.result() for future in held.map(total)] == [10_000.0 * i for i in range(8)]


def test_a_partition_on_several_workers_is_taken_once(client):
    partitions = scattered(client, [ramp(i) for i in range(6)])
    client.replicate(partitions)  # until Dask takes the copies back, in some seconds
    assert client.gather(threechains.dask.map(total, partitions)) == [10.0 * i for i in range(6)]
    assert threechains.dask.reduce(total, add, partitions).result(SECONDS) == 150.0


def test_partitions_on_several_workers_are_shared_out_evenly():
    partitions = [types.SimpleNamespace(key=i) for i in range(7)]
    held = {i: ("a", "b") for i in range(4)} | {4: ("b",), 5: (), 6: ()}
    shares = threechains.dask._shares(types.SimpleNamespace(who_has=lambda given: held), partitions)
    assert sorted((workers, len(places)) for workers, places in shares) == [((), 1), ((), 1), (("a",), 2), (("b",), 3)]
    assert sorted(place for _, places in shares for place in places) == list(range(7))


def test_a_future_that_is_cancelled_takes_the_others_nothing_away(client):
    futures = threechains.dask.map(total, scattered(client, [ramp(i) for i in range(50)]))
    client.cancel(futures[20:30])
    assert all(future.cancelled() for future in futures[20:30])
    kept = [i for i in range(50) if i not in range(20, 30)]
    assert client.gather([futures[i] for i in kept]) == [10.0 * i for i in kept]


def test_after_a_restart_of_the_cluster_everything_works_as_before(client):
    before = client.gather(threechains.dask.map(total, scattered(client, [ramp(1)])))
    old = {key for _, key in client.run(threechains.dask._address_and_key).values()}
    client.restart()
    partitions = scattered(client, [ramp(1), ramp(2)])
    assert client.gather(threechains.dask.map(total, partitions)) == [*before, 20.0]
    assert threechains.dask.reduce(total, add, partitions).result(SECONDS) == 30.0
    with threechains.dask.hold(partitions) as held:
        assert [future.result() for future in held.map(total)] == [10.0, 20.0]
    assert {key for _, key in client.run(threechains.dask._address_and_key).values()} == old


# ---- The page -----------------------------------------------------------------------------------------------


def test_importing_threechains_imports_no_dask():
    line = "import sys, threechains; sys.exit('dask' in sys.modules or 'distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line], timeout=SECONDS, check=False).returncode == 0


def test_the_page_about_dask_runs_and_prints_what_it_says(tmp_path):
    pytest.importorskip("pyarrow", reason="the page uses the extra [arrow]")
    blocks = blocks_of("dask.md")
    program = "\n".join(block for block, _ in blocks)
    # As a notebook's cells: Dask's workers would import a program that is a file.
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(shown for _, shown in blocks)
