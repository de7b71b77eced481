# SPDX-License-Identifier: Apache-2.0
"""Answers of the partitions of a Dask cluster are combined into one, and its rows are reduced by groups."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
import threechains as tc

pytest.importorskip("numba", reason="the extra [numba] is not installed")
distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
pandas = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")

import threechains.dask
from threechains import _dask, _dask_groups

SECONDS = 30
column, partition = threechains.dask.column, threechains.dask.partition


@tc.ifunc
def worth(fare: column("fare", np.float64)) -> float:
    total = 0.0
    for one in fare:
        total += one
    return total


@tc.ifunc
def spread(fare: column("fare", np.float64), riders: column("riders", np.int16), by: float = 1.0) -> tuple[int, float, float]:
    least, most, count = fare[0], fare[0], 0
    for i in range(len(fare)):
        least, most = min(least, fare[i]), max(most, fare[i])
        count += riders[i]
    return count, least * by, most * by


@tc.ifunc
def wider(riders: int, least: float, most: float, others: int, other_least: float, other_most: float) -> tuple[int, float, float]:
    return riders + others, min(least, other_least), max(most, other_most)


@tc.ifunc
def slow(fare: column("fare", np.float64), steps: int) -> float:
    state = 1
    for _ in range(steps):
        state = (state * 1103515245 + 12345) % 2147483648
    return fare[0] + (state == 7)  # which it is not, but no compiler knows


@tc.ifunc
def mean(values: partition(np.float64)) -> tuple[float, int]:
    total = 0.0
    for value in values:
        total += value
    return total, len(values)


@tc.ifunc
def both(total: float, count: int, other_total: float, other_count: int) -> tuple[float, int]:
    return total + other_total, count + other_count


@tc.ifunc
def add(a: float, b: float) -> float:
    return a + b


@pytest.fixture(scope="module")
def client(home):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0") as workers, \
            distributed.Client(workers) as made:
        made.register_plugin(threechains.dask.Nodes())
        yield made


@pytest.fixture(scope="module")
def workers(home):
    """The nodes of two workers, without Dask."""
    key = _dask.new_key()
    made = [_dask.WorkerNodes(key, "127.0.0.1", f"worker {i}") for i in range(2)]
    yield made
    for nodes in made:
        nodes.close()


def rides(seed, rows=1000, groups=50):
    """A table of random rides."""
    random = np.random.default_rng(seed)
    return pandas.DataFrame({"city": random.integers(-groups // 2, groups // 2, rows), "fare": random.integers(0, 1000, rows) / 8,
                             "riders": random.integers(1, 5, rows).astype(np.int16)})


def grouped(client, futures):
    """All groups of the futures, in order."""
    return pandas.concat(client.gather(futures)).sort_index()


def expected(frame, key="city"):
    by = frame.groupby(key)
    return pandas.DataFrame({"spread_0": by.riders.sum().astype(np.int64), "spread_1": by.fare.min(), "spread_2": by.fare.max()})


# ---- One answer of all partitions ---------------------------------------------------------------------------


def test_the_answers_of_all_partitions_are_combined_into_one_future(client):
    partitions = client.scatter([np.arange(float(i)) for i in range(40)], hash=False)
    total, count = threechains.dask.reduce(mean, both, partitions).result(SECONDS)
    assert (total, count) == (sum(np.arange(float(i)).sum() for i in range(40)), sum(range(40)))


def test_the_answers_of_partitions_that_are_still_computed_are_combined_as_well(client):
    partitions = client.map(lambda i: np.full(i, 2.0), range(20), pure=False)
    assert threechains.dask.reduce(mean, both, partitions).result(SECONDS) == (2.0 * sum(range(20)), sum(range(20)))


def test_one_partition_is_combined_with_nothing(client):
    assert threechains.dask.reduce(mean, both, client.scatter([np.ones(3)], hash=False)).result(SECONDS) == (3.0, 3)


def test_answers_that_are_arrays_are_combined(client):
    @tc.ifunc
    def bins(values: partition(np.float64), counts: tc.out(np.int64, 4)) -> None:
        for value in values:
            counts[int(value) % 4] += 1

    @tc.ifunc
    def sums(a: tc.array(np.int64), b: tc.array(np.int64), result: tc.out(np.int64, 4)) -> None:
        for i in range(4):
            result[i] = a[i] + b[i]

    partitions = client.scatter([np.arange(10.0), np.arange(3.0), np.arange(5.0)], hash=False)
    assert threechains.dask.reduce(bins, sums, partitions).result(SECONDS).tolist() == [6, 5, 4, 3]


def test_a_function_that_cannot_combine_two_answers_is_refused_with_what_it_should_take(client):
    partitions = client.scatter([np.ones(3)], hash=False)
    for combine in (add, mean, worth):
        with pytest.raises(tc.ArgumentTypeError, match=f"'{combine.name}' cannot combine two answers of 'mean', which are float64, int64 "
                           "each: let it take float64, int64, float64, int64"):
            threechains.dask.reduce(mean, combine, partitions)
    with pytest.raises(tc.ArgumentValueError, match="no partitions"):
        threechains.dask.reduce(mean, both, [], client=client)


def test_a_partition_that_fails_fails_the_whole(client):
    @tc.ifunc
    def positive(values: partition(np.float64)) -> float:
        if values[0] < 0:
            raise tc.Failure(7, "below zero")
        return values[0]

    partitions = client.scatter([np.ones(3), np.full(2, -1.0), np.ones(4)], hash=False)
    error = threechains.dask.reduce(positive, add, partitions).exception(SECONDS)
    assert isinstance(error, tc.RemoteError) and (error.code, error.ifunc) == (7, "positive")


# ---- Groups of rows -----------------------------------------------------------------------------------------


def test_each_group_has_the_rows_of_all_partitions(client):
    frames = [rides(seed) for seed in range(7)]
    found = grouped(client, threechains.dask.shuffle_reduce(spread, client.scatter(frames, hash=False), key="city"))
    pandas.testing.assert_frame_equal(found, expected(pandas.concat(frames)))


def test_each_worker_owns_some_groups_and_no_group_has_two_owners(client):
    frames = [rides(seed, groups=400) for seed in range(4)]
    answers = threechains.dask.shuffle_reduce(worth, client.scatter(frames, hash=False), key="city")
    cities = [set(answer.index) for answer in client.gather(answers)]
    assert len(cities) == 2 and all(cities) and not cities[0] & cities[1]
    held = client.who_has(answers)
    assert len({worker for answer in answers for worker in held[answer.key]}) == 2


def test_a_data_frame_of_dask_is_grouped_and_arguments_are_passed(client):
    frames = pytest.importorskip("dask.dataframe", reason="Dask's data frames are not installed")
    frame = rides(1, 5000)
    answers = threechains.dask.shuffle_reduce(spread, frames.from_pandas(frame, npartitions=5), 2.0, key="city", client=client)
    wanted = expected(frame)
    wanted[["spread_1", "spread_2"]] *= 2.0
    pandas.testing.assert_frame_equal(grouped(client, answers), wanted)


def test_tables_of_arrow_give_tables_of_arrow(client):
    tables = [pa.table({"city": pa.array([1, 2, 1], pa.int32()), "fare": [1.0, 2.0, 4.0]}), pa.table({"city": pa.array([2], pa.int32()), "fare": [8.0]})]
    answers = client.gather(threechains.dask.shuffle_reduce(worth, client.scatter(tables, hash=False), key="city"))
    whole = pa.concat_tables(answers)
    assert whole.schema.names == ["city", "worth"] and whole.schema.types == [pa.int32(), pa.float64()]
    assert sorted(zip(whole["city"].to_pylist(), whole["worth"].to_pylist())) == [(1, 5.0), (2, 10.0)]


@pytest.mark.parametrize("combine", [None, wider])
@pytest.mark.parametrize("seed", range(12))
def test_groups_of_any_size_and_keys_of_any_type_are_those_of_pandas(workers, seed, combine):
    random = np.random.default_rng(seed)
    dtype = random.choice(["int8", "uint8", "int16", "uint32", "int64", "uint64", "bool", "datetime64[ns]"])
    bits = 8 * np.dtype(dtype).itemsize
    groups = 2 if dtype == "bool" else int(random.choice([1, 2, 100, min(1 << (bits - 1), 60_000)]))
    frames = []
    for i in range(random.integers(1, 6)):
        rows = int(random.choice([0, 1, 7, 3000, 40_000]))
        keys = random.integers(0, groups, rows)
        if dtype in ("int64", "uint64", "datetime64[ns]"):
            keys = keys * 0x1234567890123 - 17 * (dtype == "int64")
        frames.append(rides(i, rows).assign(city=keys.astype(dtype)))
    owners = int(random.integers(1, 5))
    plan = threechains.dask._plan(spread, "city", owners, combine)
    kept = [_dask_groups.keep(workers[i % 2], plan, i, frames[i::3], (1.0,)) for i in range(min(3, len(frames)))]
    found = pandas.concat([_dask_groups.reduced(workers[owner % 2], plan, (1.0,), kept, owner) for owner in range(owners)])
    for i in range(3):
        workers[i % 2].drop(i)
    pandas.testing.assert_frame_equal(found.sort_index(), expected(pandas.concat(frames)), check_index_type=dtype != "bool")


@pytest.mark.parametrize("combine", [None, wider])
@pytest.mark.parametrize("kind", ["object", "string", "category"])
def test_keys_can_be_texts(client, kind, combine):
    names = np.array(["Ulm", "Köln", "", "Bonn\0", "Bonn"])
    frames = [frame.assign(city=pandas.Series(names[frame.city % 5], dtype=kind)) for frame in map(rides, range(6))]
    found = grouped(client, threechains.dask.shuffle_reduce(spread, client.scatter(frames, hash=False), key="city", combine=combine))
    wanted = expected(pandas.concat(frames).astype({"city": "object"}))
    assert found.index.tolist() == wanted.index.tolist()
    pandas.testing.assert_frame_equal(found.reset_index(drop=True), wanted.reset_index(drop=True))


def test_keys_of_arrow_can_be_texts(client):
    tables = [pa.table({"city": pa.array(["Ulm", "Köln", "Ulm"], kind), "fare": [1.0, 2.0, 4.0]})
              for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))]
    whole = pa.concat_tables(client.gather(threechains.dask.shuffle_reduce(worth, client.scatter(tables, hash=False), key="city")))
    assert whole.schema.types == [pa.string(), pa.float64()]
    assert sorted(zip(whole["city"].to_pylist(), whole["worth"].to_pylist())) == [("Köln", 6.0), ("Ulm", 15.0)]


def test_texts_with_the_same_hash_are_an_error(workers, monkeypatch):
    monkeypatch.setattr(_dask_groups, "_number_of", lambda text: len(text))
    plan = threechains.dask._plan(worth, "city", 1)
    with pytest.raises(tc.Error, match="the keys b'Ulm' and b'Bad' have the same hash"):
        _dask_groups.keep(workers[0], plan, "x", [pandas.DataFrame({"city": ["Ulm", "Bad"], "fare": 1.0})], ())
    kept = [_dask_groups.keep(nodes, plan, "x", [pandas.DataFrame({"city": [city], "fare": 1.0})], ())
            for nodes, city in zip(workers, ("Ulm", "Bad"))]
    with pytest.raises(tc.Error, match="have the same hash"):
        _dask_groups.reduced(workers[0], plan, (), kept, 0)
    for nodes in workers:
        nodes.drop("x")


def fetched_bytes(client):
    return sum(client.run(lambda dask_worker: dask_worker.plugins["threechains"].fetched_bytes).values())


def test_answers_that_can_be_combined_travel_in_place_of_the_rows(client):
    frames = [rides(seed, 10_000) for seed in range(8)]
    partitions, before = client.scatter(frames, hash=False), fetched_bytes(client)
    whole = threechains.dask.shuffle_reduce(spread, partitions, by=2.0, key="city")
    with_rows = fetched_bytes(client) - before
    combined = threechains.dask.shuffle_reduce(spread, partitions, by=2.0, key="city", combine=wider)
    with_answers = fetched_bytes(client) - before - with_rows
    pandas.testing.assert_frame_equal(grouped(client, combined), grouped(client, whole))
    assert with_rows > 80_000 * 10 // 4 and with_answers <= 50 * 32  # key and three numbers; of 10 bytes for each of 80,000 rows


def test_one_number_for_each_group_is_combined(client):
    frames = [rides(seed) for seed in range(5)]
    found = grouped(client, threechains.dask.shuffle_reduce(worth, client.scatter(frames, hash=False), key="city", combine=add))
    pandas.testing.assert_series_equal(found.worth, pandas.concat(frames).groupby("city").fare.sum(), check_names=False)


def test_answers_are_never_combined_with_those_of_no_rows(client):
    @tc.ifunc
    def least(fare: column("fare", np.float64)) -> float:
        if len(fare) == 0:
            raise tc.Failure(1, "a group without rows")
        return fare.min()

    @tc.ifunc
    def lower(a: float, b: float) -> float:
        return min(a, b)

    frames = [pandas.DataFrame({"city": [city], "fare": [float(city)]}) for city in range(6)] + [rides(1, 0).astype({"city": np.int64})]
    found = grouped(client, threechains.dask.shuffle_reduce(least, client.scatter(frames, hash=False), key="city", combine=lower))
    assert found.least.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_no_partitions_give_no_futures(client):
    assert threechains.dask.shuffle_reduce(worth, [], key="city", client=client) == []


def test_the_memory_of_the_rows_is_given_back(client):
    answers = threechains.dask.shuffle_reduce(worth, client.scatter([rides(1)], hash=False), key="city")
    del answers
    end = time.monotonic() + SECONDS
    while any(client.run(lambda dask_worker: len(dask_worker.plugins["threechains"]._nodes.holder()._held)).values()):
        assert time.monotonic() < end
        time.sleep(0.01)


# ---- What groups do not take --------------------------------------------------------------------------------


@pytest.mark.parametrize("frame, words", [
    (rides(1).drop(columns="city"), "the partition has no column 'city': it has 'fare', 'riders'"),
    (rides(1).drop(columns="fare"), "the partition has no column 'fare'"),
    (rides(1).assign(city=1.5), "the key 'city' is float64 when keys are whole numbers, dates or texts"),
    (rides(1).assign(city=[1, *["Ulm"] * 999]), "the key 'city' has a int when keys are whole numbers, dates or texts"),
    (rides(1).assign(city=[None, *["Ulm"] * 999]), "column 'city' has 1 nulls"),
    (rides(1).assign(city="Ulm"), "in one partition and "),
    (rides(1).assign(fare=1), "column 'fare' is int64 when the function takes float64"),
    (pa.table({"city": [1, None], "fare": [1.0, 2.0]}), "column 'city' has 1 nulls"),
    (np.ones(4), "the partition is numpy.ndarray of float64 when groups are of the rows of a table"),
])
def test_a_partition_that_cannot_be_grouped_is_refused_with_what_to_do(client, frame, words):
    with pytest.raises(tc.ArgumentError) as raised:
        threechains.dask.shuffle_reduce(worth, client.scatter([rides(2), frame], hash=False), key="city")
    assert words in str(raised.value)


def test_partitions_whose_keys_differ_in_type_are_refused(client):
    frames = [rides(1), rides(2).assign(city=np.int8(1)), rides(3), rides(4)]
    with pytest.raises(tc.ArgumentTypeError, match="the key 'city' is int(8|64) in one partition and int(8|64) in another one: convert them"):
        threechains.dask.shuffle_reduce(worth, client.scatter(frames, hash=False), key="city")


def test_functions_that_cannot_be_called_for_groups_are_refused(client):
    @tc.ifunc
    def of_arrays(values: partition(np.float64)) -> float:
        return values[0]

    @tc.ifunc
    def of_texts(names: column("name", str)) -> int:
        return len(names)

    @tc.ifunc
    def array_out(fare: column("fare", np.float64), answer: tc.out(np.float64, 2)) -> None:
        answer[0] = fare[0]

    @tc.ifunc
    def loaded(fare: column("fare", np.float64)) -> float:
        return fare[0]

    for kernel, words in ((of_arrays, "is an array when groups are of the rows of a table"), (of_texts, "has nulls, texts or bits"),
                          (array_out, "returns no number and no tuple"),
                          (pickle.loads(pickle.dumps(loaded)), "was loaded or unpickled")):
        with pytest.raises(tc.ArgumentTypeError, match=words):
            threechains.dask.shuffle_reduce(kernel, client.scatter([rides(1)], hash=False), key="city")


def test_a_function_that_cannot_combine_the_answers_of_groups_is_refused(client):
    partitions = client.scatter([rides(1)], hash=False)
    with pytest.raises(tc.ArgumentTypeError, match="'add' cannot combine two answers of 'spread', which are int64, float64, float64 each"):
        threechains.dask.shuffle_reduce(spread, partitions, key="city", combine=add)

    @tc.ifunc
    def loaded(a: float, b: float) -> float:
        return a - b

    with pytest.raises(tc.ArgumentTypeError, match="ifunc 'loaded' was loaded or unpickled"):
        threechains.dask.shuffle_reduce(worth, partitions, key="city", combine=pickle.loads(pickle.dumps(loaded)))


def test_answers_that_cannot_be_combined_fail_with_the_function_that_failed(client):
    @tc.ifunc
    def alone(a: float, b: float) -> float:
        if a > 0:
            raise tc.Failure(5, "two answers for one group")
        return b

    frames = [pandas.DataFrame({"city": [1, 2], "fare": 1.0}), pandas.DataFrame({"city": [2, 3], "fare": 1.0})]
    with pytest.raises(tc.RemoteError, match="two answers for one group") as raised:
        client.gather(threechains.dask.shuffle_reduce(worth, client.scatter(frames, hash=False), key="city", combine=alone))
    assert (raised.value.ifunc, raised.value.code) == ("alone", 5)


def test_a_function_that_fails_for_one_group_fails_the_answer_of_its_owner(client):
    @tc.ifunc
    def at_most(fare: column("fare", np.float64), limit: float) -> float:
        for one in fare:
            if one > limit:
                raise tc.Failure(9, "a fare above the limit")
        return fare[0]

    frames = [pandas.DataFrame({"city": np.arange(100), "fare": 1.0}), pandas.DataFrame({"city": [7], "fare": [5.0]})]
    answers = threechains.dask.shuffle_reduce(at_most, client.scatter(frames, hash=False), 2.0, key="city")
    errors = [error for answer in answers if (error := answer.exception(SECONDS)) is not None]
    assert [(type(error), error.code) for error in errors] == [(tc.RemoteError, 9)] and "a fare above the limit" in str(errors[0])


# ---- Workers that die ---------------------------------------------------------------------------------------


def drop_rows(client, address):
    def drop(dask_worker):
        nodes = dask_worker.plugins["threechains"]._nodes
        if nodes.holder().address == address:
            for key in list(nodes.holder()._held):
                nodes.drop(key)

    client.run(drop)


@pytest.mark.parametrize("combine", [None, wider])
def test_rows_that_are_lost_on_the_way_are_had_again(client, monkeypatch, combine):
    frames = [rides(seed) for seed in range(6)]
    partitions = client.scatter(frames, hash=False)
    gather, gathered = client.gather, []

    def lose_once(futures, *args, **named):
        rows = gather(futures, *args, **named)
        gathered.append([future.key for future in futures])
        if len(gathered) == 1:
            drop_rows(client, rows[1].address)
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(client, "gather", lose_once)
        answers = threechains.dask.shuffle_reduce(spread, partitions, key="city", combine=combine)
    pandas.testing.assert_frame_equal(grouped(client, answers), expected(pandas.concat(frames)))
    first, second = gathered
    assert first[0] == second[0] and first[1] != second[1]  # only what was lost is sorted again


def test_rows_that_are_lost_each_time_are_an_error_that_names_the_node(client, monkeypatch):
    gather = client.gather

    def lose(futures, *args, **named):
        rows = gather(futures, *args, **named)
        drop_rows(client, rows[0].address)
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(client, "gather", lose)
        with pytest.raises(tc.Error, match=r"worth: the rows of some groups (cannot be had from the node at 127\.0\.0\.1:\d+: "
                           r".*keeps these rows no more|are kept no more)") as raised:
            threechains.dask.shuffle_reduce(worth, client.scatter([rides(1), rides(2)], hash=False), key="city")
    assert raised.value.status == tc.Status.DISCONNECTED


def test_a_connection_to_a_node_that_is_gone_is_made_anew(workers):
    frames = [rides(1), rides(2)]
    for i in range(2):  # the second time there is another node
        other = _dask.WorkerNodes(workers[0]._key, "127.0.0.1", "another worker")
        plan = threechains.dask._plan(spread, "city", 1)
        kept = [_dask_groups.keep(workers[0], plan, "first", frames[:1], (1.0,)), _dask_groups.keep(other, plan, "second", frames[1:], (1.0,))]
        found = _dask_groups.reduced(workers[0], plan, (1.0,), kept, 0)
        pandas.testing.assert_frame_equal(found.sort_index(), expected(pandas.concat(frames)))
        other.close()
        with pytest.raises(_dask_groups.RowsLostError, match="cannot be had from the node at") as raised:
            _dask_groups.reduced(workers[0], plan, (1.0,), kept, 0)
        assert raised.value.source == 1
        assert pickle.loads(pickle.dumps(raised.value)).source == 1
        workers[0].drop("first")


@pytest.mark.parametrize("owner", [0, 1])  # at the worker itself, and elsewhere
def test_rows_of_another_question_are_not_taken_for_those_that_were_given_back(workers, owner):
    plan = threechains.dask._plan(worth, "city", 1)
    kept = [_dask_groups.keep(workers[0], plan, "first", [rides(1)], ())]
    workers[0].drop("first")
    others = [_dask_groups.keep(workers[0], plan, "second", [rides(2)], ())]
    with pytest.raises(_dask_groups.RowsLostError, match="keeps these rows no more|are kept no more"):
        _dask_groups.reduced(workers[owner], plan, (), kept, 0)
    assert _dask_groups.reduced(workers[owner], plan, (), others, 0).worth.sum() == rides(2).fare.sum()
    workers[0].drop("second")


def test_when_a_worker_is_killed_the_groups_are_still_right(client):
    partitions = client.map(lambda seed: pandas.DataFrame({"city": np.arange(40) % 20, "fare": np.full(40, float(seed))}), range(8), pure=False)
    distributed.wait(partitions, timeout=SECONDS)
    victim = next(iter(client.run(os.getpid).values()))
    killer = threading.Timer(0.2, os.kill, (victim, signal.SIGKILL))
    killer.start()
    found = grouped(client, threechains.dask.shuffle_reduce(slow, partitions, 20_000_000, key="city"))
    killer.join()
    assert found.index.tolist() == list(range(20)) and set(found.slow) <= set(map(float, range(8)))
    client.wait_for_workers(2, timeout=SECONDS)
    total = threechains.dask.reduce(worth, add, partitions).result(SECONDS)
    assert total == 40.0 * sum(range(8))
