# SPDX-License-Identifier: Apache-2.0
"""Ifuncs in a Dask cluster: they go to the partitions that its workers hold. docs/dask.md is the tutorial.

    import threechains.dask

    @tc.ifunc
    def total(prices: threechains.dask.partition(np.float64)) -> float: ...

    client.register_plugin(threechains.dask.Nodes())
    futures = threechains.dask.map(total, collection)

The futures are Dask's own. Each is one task of Dask's, so that the death of workers, spilling and cancellation are as for all tasks.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import logging
import pickle
import threading
import time
import uuid
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

try:
    import distributed
    from dask._task_spec import Alias
    from dask.base import is_dask_collection
    from dask.core import flatten
    from distributed.comm import get_address_host
except ImportError as error:
    raise ImportError(f"threechains.dask needs Dask: {error}; pip install 'threechains[dask]'") from error

from threechains import _dask, _dask_groups, _dask_held, _types
from threechains._cluster import Cluster, Endpoint
from threechains._errors import ArgumentTypeError, ArgumentValueError, Error, Status
from threechains._ifunc import Ifunc

__all__ = ["Held", "Nodes", "column", "connect", "hold", "map", "partition", "reduce", "shuffle_reduce"]

_REGISTER = "client.register_plugin(threechains.dask.Nodes())"
# So long a task waits for the node of a worker that has just joined: Dask may send it tasks before the plug-in.
_PLUGIN_SECONDS = 10.0
_PAUSE_SECONDS = 0.01
_FAN_IN = 8  # of the tree in which the answers of workers are combined
_CODE_KEPT = 64  # functions that the workers keep for one client
_ATTEMPTS = 3  # of a shuffle while workers die
_LOG = logging.getLogger("threechains")
_checked: weakref.WeakSet[Any] = weakref.WeakSet()  # clients of workers that have nodes


class Nodes(distributed.WorkerPlugin):
    """Starts a node in each worker of a Dask cluster, and in those that join later: `client.register_plugin(Nodes())`.

    The nodes have one fresh key, which this object brings to the workers by Dask's own connections. They trust each other, processes
    of their own user on their host, and nobody else. A second registration changes nothing.
    """

    name = "threechains"
    idempotent = True

    def __init__(self) -> None:
        self._key = _dask.new_key()
        self._nodes: _dask.WorkerNodes | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_key": self._key, "_nodes": None}

    def __repr__(self) -> str:
        return "<threechains.dask.Nodes>"  # without the key

    def setup(self, worker: Any) -> None:
        """Dask calls it in the worker. What fails here Dask only logs, so the first use of the node tries again and raises it."""
        self._nodes = _dask.WorkerNodes(self._key, get_address_host(worker.address), f"Dask worker {worker.address}")
        try:
            self._nodes.address
        except Exception as error:
            _LOG.warning("%s", error)

    def teardown(self, worker: Any) -> None:
        """Dask calls it when the worker ends."""
        if self._nodes is not None:
            self._nodes.close()

    @property
    def fetched_bytes(self) -> int:
        """In a worker: the bytes of rows that shuffle_reduce() has fetched from the nodes of other workers.

            client.run(lambda dask_worker: dask_worker.plugins["threechains"].fetched_bytes)
        """
        return 0 if self._nodes is None else self._nodes.fetched_bytes

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Dask calls it in the worker for each step of each task. Rows of groups go when nobody needs them any more."""
        if self._nodes is not None and finish in ("released", "forgotten") and self._nodes.holds(key):
            threading.Thread(target=self._nodes.drop, args=(key,)).start()  # as this is Dask's event loop


def partition(dtype: Any) -> Any:
    """A parameter of an ifunc: the partition, an array of one dimension. It is Dask's own memory, and read-only.

        def total(prices: threechains.dask.partition(np.float64)) -> float: ...
    """
    return _types.data(_dask.PARTITION, dtype, readonly=True)


def column(name: str, dtype: Any, *, nulls: bool = False) -> Any:
    """A parameter of an ifunc: a column of the partition, which is a table. As `tc.column`.

        def total(fares: threechains.dask.column("fare", np.float64)) -> float: ...
    """
    return _types.column(f"{_dask.PARTITION}.{name}", dtype, nulls=nulls)


def map(kernel: Ifunc, collection: Any, *args: Any, client: Any = None, **named: Any) -> list[Any]:
    """Calls an ifunc for each partition of a Dask collection, at the worker that holds it. Gives Dask's futures, in order.

    `kernel` is made with `@tc.ifunc`. It takes the partition by parameters that are annotated with `partition(dtype)`, or with
    `column(name, dtype)` for each column of a table that it uses.
    `collection` is a collection of Dask's, or a list of futures, one for each partition. `args` and `named` are the other
    arguments of `kernel`, the same for all partitions. A call that fails is a future that fails; the others have their answers.
    """
    arguments = _arguments(kernel, args, named)
    client = _client(client)
    _check_workers(client)
    partitions = _partitions(client, collection)
    code = _sent(client, kernel.name, _code_of(kernel))
    made: dict[int, Any] = {}
    for workers, places in _by_holder(client, partitions).items():
        keys = [f"{kernel.name}-{uuid.uuid4().hex}-{place}" for place in places]
        futures = client.map(_call, [partitions[place] for place in places], key=keys, pure=False, code=code,
                             arguments=arguments, **_at(workers))
        made.update(zip(places, futures))
    return [made[place] for place in range(len(partitions))]


def reduce(kernel: Ifunc, combine: Ifunc, collection: Any, *args: Any, client: Any = None, **named: Any) -> Any:
    """Calls an ifunc for each partition as `map`, and combines all answers into one. Gives Dask's future of it.

    Each worker combines the answers of its own partitions, and only the results of workers travel, from worker to worker.
    `combine` is an ifunc of two answers: of two numbers, of two arrays, or of the members of one tuple and then of another one. It
    returns what `kernel` returns. The order in which answers are combined is not that of the partitions.
    """
    arguments = _arguments(kernel, args, named)
    _dask.check_combine(kernel, combine)
    client = _client(client)
    _check_workers(client)
    partitions = _partitions(client, collection)
    if not partitions:
        raise ArgumentValueError(f"{kernel.name}: the collection has no partitions, and nothing to combine", "collection")
    code = _sent(client, kernel.name, (_code_of(kernel), combine))
    label = f"{kernel.name}-{combine.name}-{uuid.uuid4().hex}"
    level = [client.submit(_fold, [partitions[place] for place in places], code, arguments, key=f"{label}-0-{i}", pure=False,
                           **_at(workers))
             for i, (workers, places) in enumerate(_shares(client, partitions))]
    depth = 0
    while len(level) > 1:
        depth += 1
        groups = [level[i : i + _FAN_IN] for i in range(0, len(level), _FAN_IN)]
        level = [client.submit(_combined, group, code, key=f"{label}-{depth}-{i}", pure=False) for i, group in enumerate(groups)]
    return level[0]


def shuffle_reduce(kernel: Ifunc, collection: Any, *args: Any, key: str, combine: Ifunc | None = None, client: Any = None,
                   **named: Any) -> list[Any]:
    """Calls an ifunc for each group of rows of a table: those with the same value of column `key`. Gives Dask's futures of the answers.

    `collection` is a data frame of Dask's, or a list of futures of tables. `kernel` takes columns, as for `map`: those of one group. It
    returns a number, or a tuple of numbers. There is one future for each worker that holds partitions: a table with a row for each
    group that the worker owns. It is a data frame of pandas where the partitions are, with the key as its index, else an Arrow table.

    Each worker sorts its rows by groups. The owners of the groups fetch the rows from the workers' nodes by an ifunc. This function
    returns when that is done, and does it again for what a worker that died meanwhile had.
    `combine` is an ifunc as for `reduce`. With it `kernel` is called for the rows of a group in each partition, and `combine` makes one
    of its answers for one group. No rows travel then, so that sums, counts and extremes are had sooner.
    """
    arguments = _arguments(kernel, args, named)
    if combine is not None:
        _dask.check_combine(kernel, combine)
    client = _client(client)
    _check_workers(client)
    shares = _shares(client, partitions) if (partitions := _held(_partitions(client, collection))) else []
    plan = _plan(kernel, key, len(shares), combine)
    code = _sent(client, kernel.name, plan)
    label = f"{kernel.name}-groups-{uuid.uuid4().hex}"
    kept: list[Any] = [None] * len(shares)
    answers: list[Any] = [None] * len(shares)
    for attempt in range(_ATTEMPTS):
        for i, (workers, places) in enumerate(shares):
            if kept[i] is None:
                kept[i] = client.submit(_keep, [partitions[place] for place in places], code, arguments,
                                        key=f"{label}-rows-{attempt}-{i}", pure=False, **_at(workers))
        rows = client.gather(kept)
        _dask_groups.check_keys(plan, rows)
        for i, (workers, _) in enumerate(shares):
            if answers[i] is None:
                answers[i] = client.submit(_reduced, code, arguments, rows, i, key=f"{label}-{attempt}-{i}", pure=False, **_at(workers))
        distributed.wait(answers)
        lost = {i: error for i, answer in enumerate(answers) if isinstance(error := answer.exception(), _dask_groups.RowsLostError)}
        if not lost:
            return answers
        for i, error in lost.items():
            answers[i], kept[error.source] = None, None
    raise next(iter(lost.values()))


class Held:
    """Partitions that stay where they are, for calls that do not pass Dask's scheduler. Made by `hold`."""

    def __init__(self, cluster: Cluster, futures: Sequence[Any], places: Sequence[tuple[int, dict[str, tuple[int, Any]]]]) -> None:
        self._cluster, self._futures, self._places = cluster, futures, places

    def __len__(self) -> int:
        return len(self._places)

    def map(self, kernel: Ifunc, *args: Any, **named: Any) -> list[concurrent.futures.Future[Any]]:
        """Calls an ifunc for each partition at once, as `threechains.dask.map`. Gives a `concurrent.futures.Future` for each, in order.

        Columns must be plain numbers without nulls. A call to a worker that has died fails with Status.DISCONNECTED.
        """
        from threechains import _dask_kernels  # needs Numba

        arguments = _arguments(kernel, args, named)
        arrays, sent = _dask_kernels.arrays_of(kernel), _dask_kernels.on_rows(kernel)
        calls = []
        for place, (node, held) in enumerate(self._places):
            for name, dtype in arrays.items():
                if name not in held or held[name][1] != dtype:
                    raise _misfit(kernel, place, name, dtype, held)
            calls.append((node, [held[name][0] for name in arrays]))
        return [_future_of(self._cluster[node], sent, (*arguments, *rows)) for node, rows in calls]

    def close(self) -> None:
        """Gives the partitions back to Dask, which may move or forget them then. Calls that still run are waited for."""
        self._cluster.close()
        self._futures = ()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<threechains.dask.Held, {len(self)} partitions at {len(self._cluster)} workers>"


def hold(collection: Any, *, client: Any = None, timeout: float = 10.0) -> Held:
    """Lets partitions stay where they are until `close`, so that calls reach them in microseconds: without a task of Dask's.

    `collection` is as for `map`. Partitions that are not computed are computed first. They may not be changed meanwhile. A partition
    that dies with its worker is not made again: hold the collection anew.
    """
    client = _client(client)
    _check_workers(client)
    partitions = _held(_partitions(client, collection))
    if not partitions:
        raise ArgumentValueError("the collection has no partitions, and there is nothing to hold", "collection")
    shares = _shares(client, partitions)
    label = f"held-{uuid.uuid4().hex}"
    futures = [client.submit(_hold, [partitions[place] for place in places], key=f"{label}-{i}", pure=False, **_at(workers))
               for i, (workers, places) in enumerate(shares)]
    found = client.gather(futures)
    addresses = list(dict.fromkeys(rows.address for rows in found))
    where: dict[int, tuple[int, dict[str, tuple[int, Any]]]] = {}
    for (_, places), rows in zip(shares, found):
        where.update(zip(places, ((addresses.index(rows.address), arrays) for arrays in rows.partitions)))
    cluster = _cluster_of(client, addresses, timeout)
    return Held(cluster, futures, [where[place] for place in range(len(partitions))])


def connect(client: Any = None, *, timeout: float = 10.0) -> Cluster:
    """The nodes of the workers that there are now, to send functions to without Dask's scheduler. Close it after use.

    The node of this process has the key of theirs. A worker that is restarted has a new node, at a new address: connect again.
    """
    client = _client(client)
    _check_workers(client)
    return _cluster_of(client, None, timeout)


# ---- At the client ------------------------------------------------------------------------------------------


def _client(client: Any) -> Any:
    if client is None:
        try:
            return distributed.get_client()
        except ValueError:
            raise ArgumentValueError("there is no Dask client: make one, client = distributed.Client(ADDRESS), or pass client=", "client") \
                from None
    if not isinstance(client, distributed.Client) or client.asynchronous:
        told = "an asynchronous client" if isinstance(client, distributed.Client) else f"of type {type(client).__name__}"
        raise ArgumentTypeError(f"client is {told} when it must be a client of Dask's: distributed.Client(ADDRESS)", "client")
    return client


def _check_workers(client: Any) -> None:
    """Raises where nobody has registered the plug-in."""
    if client in _checked:
        return
    name = Nodes.name
    if not client.run_on_scheduler(lambda dask_scheduler: name in dask_scheduler.worker_plugins):
        raise Error(Status.NOT_FOUND, f"the workers of {client.scheduler.address} have no nodes: write {_REGISTER} first")
    _checked.add(client)


def _arguments(kernel: Ifunc, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    _dask.check_kernel(kernel)
    arguments = kernel._bound(args, named)
    assert kernel.encode is not None  # it has a signature
    kernel.encode(arguments)  # arguments of another type are refused here, and not once for each partition
    return arguments


def _sent(client: Any, name: str, code: Any) -> Any:
    """Is a task, so that each worker gets the code once, and Dask can make it again when the worker dies that has it."""
    key = f"ifunc-{name}-{hashlib.sha256(pickle.dumps(code)).hexdigest()[:32]}"
    known = vars(client).setdefault("_threechains_code", {})  # there, as the futures know their client
    future = known.pop(key, None)
    if future is None or future.status not in ("pending", "finished"):
        future = client.submit(_code, code, key=key)
    known[key] = future
    if len(known) > _CODE_KEPT:
        del known[next(iter(known))]  # the one that was not used for longest
    return future


def _code_of(kernel: Ifunc) -> _dask.Code:
    """What map() and reduce() send."""
    if vars(kernel).get("__wrapped__") is None:
        return _dask.Code(kernel, None, {})  # without Numba, which only who makes functions needs
    from threechains import _dask_kernels

    on_arrays = _dask_kernels.on_arrays(kernel)
    return _dask.Code(kernel, on_arrays, {} if on_arrays is None else _dask_kernels.arrays_of(kernel))


def _plan(kernel: Ifunc, key: str, owners: int, combine: Ifunc | None = None) -> _dask_groups.Plan:
    from threechains import _dask_kernels  # needs Numba, which workers need not have

    assert kernel._answer is not None
    made = {function.__name__: _dask_kernels.compiled(function)
            for function in (_dask_kernels.find_groups, _dask_kernels.copy_runs, _dask_kernels.fetch)}
    columns = _dask_kernels.columns_of(kernel)
    return _dask_groups.Plan(kernel.name, columns, key, kernel._answer.dtypes, owners,
                             place_rows=_dask_kernels.place_rows(tuple(columns.values())),
                             each_group=_dask_kernels.each_group(kernel),
                             combine_groups=None if combine is None else _dask_kernels.combine_groups(combine), **made)


def _at(workers: Sequence[str]) -> dict[str, Any]:
    return {"workers": list(workers), "allow_other_workers": True} if workers else {}


def _cluster_of(client: Any, addresses: Sequence[str] | None, timeout: float) -> Cluster:
    """Of the nodes at these addresses; None: of one node for each worker."""
    answers: Mapping[str, tuple[str, str]] = client.run(_address_and_key)
    if not answers:
        raise ArgumentValueError("the Dask cluster has no workers now: wait for some with client.wait_for_workers(1)", "client")
    key = next(key for _, key in answers.values())
    return _dask.cluster_of(key, [address for address, _ in answers.values()] if addresses is None else addresses, timeout)


def _future_of(node: Endpoint, ifunc: Ifunc, arguments: tuple[Any, ...]) -> concurrent.futures.Future[Any]:
    try:
        return node.submit(ifunc, *arguments, deadline=None)
    except Error as error:
        if error.status != Status.DISCONNECTED:
            raise
        failed: concurrent.futures.Future[Any] = concurrent.futures.Future()
        failed.set_exception(error)  # the calls to other workers have their answers
        return failed


def _misfit(kernel: Ifunc, place: int, name: str, dtype: Any, held: Mapping[str, tuple[int, Any]]) -> ArgumentTypeError:
    label = f"{kernel.name}: partition {place}"
    if name in held:
        what = f"column '{name}' is" if name else "is an array of"
        return ArgumentTypeError(f"{label}: {what} {held[name][1]} when the function takes {dtype}: annotate it with {held[name][1]}, or "
                                 "convert the data", name)
    if not name:
        return ArgumentTypeError(f"{label} is a table when the function takes an array: take its columns, by "
                                 "threechains.dask.column('NAME', DTYPE)", "collection")
    there = ", ".join(repr(one) for one in held) if _dask.ARRAY not in held else "none, as it is an array"
    return ArgumentTypeError(f"{label} has no column '{name}' of plain numbers without nulls; it has {there}", name)


def _partitions(client: Any, collection: Any) -> list[Any]:
    """Futures of the partitions, in order."""
    if is_dask_collection(collection):
        found = _in_order(collection)
        if found is None:
            found = _in_order(client.persist(collection))
        if found is None:
            raise ArgumentTypeError(f"collection is a {type(collection).__name__} of Dask's, whose partitions cannot be told: give their "
                                    "futures, client.compute(collection.to_delayed())", "collection")
        return found
    if isinstance(collection, distributed.Future):
        collection = [collection]
    partitions = list(collection) if isinstance(collection, Iterable) else [collection]
    for one in partitions:
        if not isinstance(one, distributed.Future):
            raise ArgumentTypeError(f"collection has a {type(one).__name__} when it must be a collection of Dask's, or a list of its "
                                    "futures: write client.scatter([...]) for arrays of this process", "collection")
    return partitions


def _in_order(collection: Any) -> list[Any] | None:
    """None: it is not persisted, or something is still to be done with what is."""
    graph = collection.__dask_graph__()
    found = []
    for key in flatten(collection.__dask_keys__()):
        value = graph.get(key)
        while isinstance(value, Alias):  # data frames name their partitions anew when they are persisted
            value = graph.get(value.target)
        if not isinstance(value, distributed.Future):
            return None
        found.append(value)
    return found


def _held(partitions: list[Any]) -> list[Any]:
    """When all are computed. One that failed fails what takes it."""
    distributed.wait(partitions)
    return partitions


def _by_holder(client: Any, partitions: Sequence[Any]) -> dict[tuple[str, ...], list[int]]:
    """The places of partitions in the list, by the workers that hold them; by none those that are still computed."""
    held = client.who_has(partitions) if partitions else {}
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, partition in enumerate(partitions):
        groups.setdefault(tuple(sorted(held.get(partition.key, ()))), []).append(place)
    return groups


def _shares(client: Any, partitions: Sequence[Any]) -> list[tuple[tuple[str, ...], list[int]]]:
    """The places of partitions in the list, by the one worker that takes them all, of those that hold them. What is still computed
    has no worker yet, and each is a share of its own."""
    shares: dict[tuple[str, ...], list[int]] = {}
    alone = []
    for workers, places in _by_holder(client, partitions).items():
        for place in places:
            if workers:
                fewest = min(workers, key=lambda worker: len(shares.get((worker,), ())))
                shares.setdefault((fewest,), []).append(place)
            else:
                alone.append(((), [place]))
    return [*shares.items(), *alone]


# ---- At the workers -----------------------------------------------------------------------------------------


def _code(code: Any) -> Any:
    return code


def _call(partition: Any, code: _dask.Code, arguments: tuple[Any, ...]) -> Any:
    """The task of one partition."""
    return _nodes_of(distributed.get_worker()).call(code, arguments, partition)


def _fold(partitions: Sequence[Any], code: tuple[_dask.Code, Ifunc], arguments: tuple[Any, ...]) -> Any:
    """The task of all partitions of one worker in reduce()."""
    kernel, combine = code
    return _nodes_of(distributed.get_worker()).reduced(kernel, arguments, combine, partitions)


def _combined(values: Sequence[Any], code: tuple[_dask.Code, Ifunc]) -> Any:
    return _nodes_of(distributed.get_worker()).combined(code[1], values)


def _keep(partitions: Sequence[Any], plan: _dask_groups.Plan, arguments: tuple[Any, ...]) -> _dask_groups.Kept:
    """The task of all partitions of one worker in shuffle_reduce(). The rows are kept as long as Dask keeps its answer."""
    worker = distributed.get_worker()
    return _dask_groups.keep(_nodes_of(worker), plan, worker.get_current_task(), partitions, arguments)


def _hold(partitions: Sequence[Any]) -> _dask_held.Rows:
    """The task of all partitions of one worker in hold(). They are held as long as Dask keeps its answer."""
    worker = distributed.get_worker()
    return _dask_held.held(_nodes_of(worker).holder(), worker.get_current_task(), partitions)


def _reduced(plan: _dask_groups.Plan, arguments: tuple[Any, ...], kept: Sequence[_dask_groups.Kept], owner: int) -> Any:
    return _dask_groups.reduced(_nodes_of(distributed.get_worker()), plan, arguments, kept, owner)


def _nodes_of(worker: Any) -> _dask.WorkerNodes:
    end = time.monotonic() + _PLUGIN_SECONDS
    while (nodes := _nodes_now(worker, end)) is None:
        time.sleep(_PAUSE_SECONDS)
    return nodes


async def _address_and_key(dask_worker: Any) -> tuple[str, str]:
    """Runs in each worker, on the thread that also sets the plug-in up: so it must not block while it waits for that."""
    end = time.monotonic() + _PLUGIN_SECONDS
    while (nodes := _nodes_now(dask_worker, end)) is None:
        await asyncio.sleep(_PAUSE_SECONDS)
    return nodes.address, nodes._key


def _nodes_now(worker: Any, end: float) -> _dask.WorkerNodes | None:
    for plugin in list(worker.plugins.values()):
        if isinstance(plugin, Nodes) and plugin._nodes is not None:
            return plugin._nodes
    if time.monotonic() > end:
        raise Error(Status.NOT_FOUND, f"Dask worker {worker.address} has no node, {_PLUGIN_SECONDS:g} s after it was asked for one: "
                    f"write {_REGISTER}")
    return None
