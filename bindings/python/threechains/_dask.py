# SPDX-License-Identifier: Apache-2.0
"""What runs in a Dask worker: its nodes, and calls of ifuncs with a partition. Needs no Dask; dask.py has the part that does.

A call exposes its partition as named data, runs the ifunc by the node's connection to itself, and withdraws the partition. A node
has one partition at a time. A worker with several threads has several calls at a time, so it makes a further node when all are busy.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from threechains import _arrow, _tool
from threechains._cluster import Cluster, Endpoint
from threechains._errors import ArgumentTypeError, Error, Status
from threechains._ifunc import Ifunc, as_ifunc
from threechains._node import Node

if TYPE_CHECKING:
    from threechains._dask_held import Holder

PARTITION = "partition"  # the name of the data
ARRAY = ""  # what stands for the name of a column, where the partition is an array
_HOW = "threechains.dask.partition(np.float64) for an array, or threechains.dask.column('NAME', np.float64) for a column of a table"


# ---- Keys ---------------------------------------------------------------------------------------------------


def new_key() -> str:
    """A private key that no file holds, as the text of a key's file."""
    with tempfile.TemporaryDirectory(prefix="threechains-") as home:
        line = [_tool.command(), "key", "new", "dask"]
        done = subprocess.run(line, env={**os.environ, "THREECHAINS_HOME": home}, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Error(Status.IO, f"no key could be made for the nodes of the Dask workers: {done.stderr.strip()}")
        return pathlib.Path(home, "keys/dask").read_text()


def node_of(key: str, **options: Any) -> Node:
    """A node that knows and is known by the nodes of the same key alone. The key is in a file only until the node has read it."""
    with tempfile.TemporaryDirectory(prefix="threechains-") as directory:  # it is for its owner alone
        path = os.path.join(directory, "key")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(key)
        return Node(key=path, keyring="none", first_contact="refuse", **options)


def listening(key: str, host: str, name: str) -> Node:
    return node_of(key, listen=f"[{host}]:0" if ":" in host else f"{host}:0", name=name)


def cluster_of(key: str, addresses: Sequence[str], timeout: float = 10.0) -> Cluster:
    """With a node of its own, which ends with it."""
    node = node_of(key)
    try:
        cluster = Cluster(addresses, node=node, timeout=timeout)
    except BaseException:
        node.close()
        raise
    cluster._own_node = True
    return cluster


# ---- A worker's nodes ---------------------------------------------------------------------------------------


class PartitionNode:
    """A node and its connection to itself. One thread at a time may call."""

    def __init__(self, key: str, host: str, name: str) -> None:
        self.node = listening(key, host, name)
        try:
            self._itself = Cluster([self.node.address], node=self.node)
        except BaseException:
            self.node.close()
            raise

    def run(self, ifunc: Ifunc, args: tuple[Any, ...]) -> Any:
        return self._itself[0].submit(ifunc, *args, deadline=None).result()

    def run_with(self, partition: Any, ifunc: Ifunc, args: tuple[Any, ...]) -> Any:
        """The ifunc finds the partition as named data."""
        self.node.expose(PARTITION, partition)
        try:
            return self.run(ifunc, args)
        finally:
            self.node.withdraw(PARTITION)


class WorkerNodes:
    """The nodes of one worker: the one that others connect to, and further ones for calls at the same time. Any thread may use it."""

    def __init__(self, key: str, host: str, name: str) -> None:
        self._key, self._host, self._name = key, host, name
        self._lock = threading.Lock()
        self._all: list[PartitionNode] = []
        self._idle: list[PartitionNode] = []
        self._peers: dict[str, Cluster] = {}
        self._holder: Holder | None = None
        self._is_closed = False
        self._fetched_bytes = 0

    @property
    def fetched_bytes(self) -> int:
        return self._fetched_bytes

    def count_fetched(self, size: int) -> None:
        with self._lock:
            self._fetched_bytes += size

    @property
    def address(self) -> str:
        """Where the worker's node is reached. Starts it when there is none."""
        with self._lock:
            if not self._all:
                self._idle.append(self._start())
            return self._all[0].node.address

    def call(self, code: Code, arguments: tuple[Any, ...], partition: Any) -> Any:
        """The answer of the kernel for the partition."""
        with self.taken() as node:
            return _own(_answer(node, code, arguments, partition))

    def reduced(self, code: Code, arguments: tuple[Any, ...], combine: Ifunc, partitions: Sequence[Any]) -> Any:
        """The answers of the kernel for all partitions, combined into one."""
        with self.taken() as node:
            return _combined(node, combine, (_own(_answer(node, code, arguments, partition)) for partition in partitions))

    def combined(self, combine: Ifunc, answers: Sequence[Any]) -> Any:
        """One answer of many."""
        with self.taken() as node:
            return _combined(node, combine, iter(answers))

    @contextlib.contextmanager
    def taken(self) -> Iterator[PartitionNode]:
        """A node that nobody else uses meanwhile."""
        with self._lock:
            node = self._idle.pop() if self._idle else self._start()
        try:
            yield node
        finally:
            with self._lock:
                self._idle.append(node)

    def listening(self) -> Node:
        """A further node, which the caller closes."""
        return listening(self._key, self._host, self._name)

    def peer(self, address: str) -> Endpoint:
        """The node of another worker. The connection is kept for later calls."""
        with self._lock:
            known = self._peers.get(address)
        if known is None:
            made = cluster_of(self._key, [address])
            with self._lock:
                known = self._peers.setdefault(address, made)
            if known is not made:
                made.close()
        return known[0]

    def forget(self, address: str) -> None:
        """As it cannot be reached, or is another one by now."""
        with self._lock:
            known = self._peers.pop(address, None)
        if known is not None:
            known.close()

    def holds(self, key: Any) -> bool:
        """Are arrays held for the task of this key? drop() gives them back."""
        return self._holder is not None and self._holder.holds(key)

    def drop(self, key: Any) -> None:
        holder = self._holder
        if holder is not None:
            holder.drop(key)

    def holder(self) -> Holder:
        """Made when the first partitions are to be held in place."""
        from threechains import _dask_held

        with self._lock:
            if self._holder is None:
                if self._is_closed:
                    raise self._closed()
                self._holder = _dask_held.Holder(self)
            return self._holder

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            nodes, self._all, self._idle = self._all, [], []
            peers, self._peers = self._peers, {}
            holder, self._holder = self._holder, None
        for one in nodes:
            one.node.close()
        if holder is not None:
            holder.close()
        for peer in peers.values():
            peer.close()

    def _start(self) -> PartitionNode:
        """The caller holds the lock."""
        if self._is_closed:
            raise self._closed()
        try:
            made = PartitionNode(self._key, self._host, self._name)
        except Exception as error:
            raise Error(Status.IO, f"{self._name} has no node, because it could not be started at {self._host}: {error}") from error
        self._all.append(made)
        return made

    def _closed(self) -> Error:
        return Error(Status.CLOSED, f"the node of {self._name} is closed, as the worker ends")


@dataclass(frozen=True)
class Code:
    """A kernel in its two forms."""

    kernel: Ifunc  # finds the partition as named data
    on_arrays: Ifunc | None  # takes plain arrays by their addresses, after its arguments; None: it must have them by name
    arrays: dict[str, Any]  # that it takes then, by the names of columns, with their types


def _answer(node: PartitionNode, code: Code, arguments: tuple[Any, ...], partition: Any) -> Any:
    arrays = None if code.on_arrays is None else _arrays(code, partition)
    if arrays is None:  # named data of another kind, or what does not fit, which is told by who takes it by name
        return node.run_with(named_data(code.kernel, partition), code.kernel, arguments)
    assert code.on_arrays is not None
    return node.run(code.on_arrays, (*arguments, *(word for array in arrays for word in (array.ctypes.data, array.size))))


def _combined(node: PartitionNode, combine: Ifunc, answers: Iterator[Any]) -> Any:
    whole = next(answers)
    for one in answers:
        whole = _own(node.run(combine, (*_members(whole), *_members(one))))
    return whole


def _members(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def _own(answer: Any) -> Any:
    """Dask keeps the answer, perhaps for longer than the node that has its memory."""
    return answer.copy() if hasattr(answer, "dtype") and hasattr(answer, "flags") else answer


# ---- Ifuncs and partitions ----------------------------------------------------------------------------------


def check_kernel(function: Any) -> Ifunc:
    """Raises for an ifunc that takes no partition."""
    kernel = as_ifunc(function)
    if kernel._signature is None:
        raise ArgumentTypeError(f"ifunc '{kernel.name}' takes a payload, and no partition: give a Python function that is made with "
                                f"@tc.ifunc and has a parameter {_HOW}", "kernel")
    kinds = set()
    for parameter in kernel._signature.parameters:
        if parameter.kind not in ("data", "column"):
            continue
        data_name = parameter.data_name.partition(".")[0] if parameter.kind == "column" else parameter.data_name
        if data_name == PARTITION:
            if parameter.kind == "data" and not parameter.readonly:
                raise ArgumentTypeError(f"{kernel.name}: '{parameter.name}' could be written to, and the partition is Dask's own memory: "
                                        f"annotate it with threechains.dask.partition(np.{parameter.dtype.name})", parameter.name)
            kinds.add(parameter.kind)
        elif not parameter.optional:
            raise ArgumentTypeError(f"{kernel.name}: '{parameter.name}' is tc.{parameter.kind}('{parameter.data_name}'), which the nodes "
                                    f"of Dask workers do not have: they have '{PARTITION}' alone; annotate it with {_HOW}", parameter.name)
    if len(kinds) != 1:
        told = "takes the partition as an array and as a table" if kinds else "takes no partition"
        raise ArgumentTypeError(f"ifunc '{kernel.name}' {told}: give it a parameter {_HOW}", "kernel")
    return kernel


def check_combine(kernel: Ifunc, function: Any) -> None:
    """Raises for an ifunc that does not make one answer of the kernel out of two."""
    combine = as_ifunc(function)
    taken, given = combine._signature, kernel._answer
    assert given is not None
    kind = "array" if given.kind in ("out", "array") else "scalar"
    dtypes = [(kind, dtype) for dtype in given.dtypes]
    fits = dtypes and taken is not None and combine._answer is not None and combine._answer.dtypes == given.dtypes and \
        [(parameter.kind, parameter.dtype) for parameter in taken.parameters if parameter.kind != "out"] == dtypes * 2
    if not fits:
        names = ", ".join(str(dtype) for dtype in given.dtypes) or "nothing"
        told = f"two arrays of {names}" if kind == "array" else ", ".join([names] * 2)
        raise ArgumentTypeError(f"'{combine.name}' cannot combine two answers of '{kernel.name}', which are {names} each: let it take "
                                f"{told}, and return what '{kernel.name}' returns", "combine")


def named_data(kernel: Ifunc, partition: Any) -> Any:
    """The partition in the form in which a node takes it."""
    columns = columns_of(kernel)
    if columns and not is_table(partition):
        raise ArgumentTypeError(f"{kernel.name}: the partition is {told(partition)} when the function takes columns of a table: annotate "
                                f"the parameter with threechains.dask.partition({getattr(partition, 'dtype', 'DTYPE')})", "partition")
    if is_table(partition) and not columns:
        raise ArgumentTypeError(f"{kernel.name}: the partition is {told(partition)}, a table, when the function takes an array: annotate "
                                "a parameter for each column with threechains.dask.column('NAME', DTYPE)", "partition")
    if is_table(partition):
        return _table(partition, columns)
    return array_of(kernel.name, partition)


def is_frame(partition: Any) -> bool:
    """Is it a data frame of pandas? This does not import pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(partition, pandas.DataFrame)


def is_table(partition: Any) -> bool:
    """A data frame of pandas, or a table as those of pyarrow and Polars."""
    return is_frame(partition) or (_arrow.is_table(partition) and hasattr(partition, "select"))


def columns_of(kernel: Ifunc) -> dict[str, bool]:
    """The columns of the partition that the ifunc takes, and whether it takes nulls."""
    assert kernel._signature is not None
    return {parameter.data_name.partition(".")[2]: parameter.nulls for parameter in kernel._signature.parameters
            if parameter.kind == "column"}


def _table(partition: Any, columns: dict[str, bool]) -> Any:
    """The columns that are asked for, as the others would be copied for nothing. The node says which one is not there."""
    if not is_frame(partition):
        there = set(getattr(partition, "column_names", None) or partition.schema.names)
        return partition.select([name for name in columns if name in there])
    import pyarrow

    # Not Table.from_pandas(), which takes a millisecond of its own for the index and the description.
    names = [name for name in columns if name in partition.columns]
    # A NaN is a null only for who asks for nulls: others see the array that pandas has.
    return pyarrow.Table.from_arrays([pyarrow.array(partition[name], from_pandas=columns[name]) for name in names], names)


def _arrays(code: Code, partition: Any) -> list[Any] | None:
    """What the kernel takes of the partition; None: it is not there as plain arrays of these types."""
    if is_table(partition) != (ARRAY not in code.arrays):
        return None
    found = []
    for name, dtype in code.arrays.items():
        array = array_of(code.kernel.name, partition) if name == ARRAY else plain_column(partition, name)
        if array is None or array.ndim != 1 or array.dtype != dtype:
            return None
        found.append(array)
    return found


def array_of(label: str, partition: Any) -> Any:
    """An array in one piece; a copy where it is not, or is one of Arrow that has to be."""
    import numpy

    if not isinstance(partition, numpy.ndarray):
        if not hasattr(partition, "to_numpy"):  # a series of pandas, and arrays of Arrow, have it
            raise ArgumentTypeError(f"{label}: the partition is {told(partition)}, which is neither an array nor a table: let the "
                                    "partitions be NumPy arrays, pandas objects or Arrow tables", "partition")
        with contextlib.suppress(TypeError):
            return numpy.ascontiguousarray(partition.to_numpy(zero_copy_only=False))  # Arrow's, which may have to copy
        partition = partition.to_numpy()
    return numpy.ascontiguousarray(partition)


def plain_column(partition: Any, name: str) -> Any:
    """A column of a table as an array. None: there is none, it is not of plain numbers, or has nulls."""
    import numpy

    try:
        column = partition[name]
    except KeyError:
        return None
    if not is_frame(partition):
        import pyarrow

        if not isinstance(column, (pyarrow.ChunkedArray, pyarrow.Array)) or column.null_count:  # as Polars' columns
            return None
    array = column.to_numpy()
    return numpy.ascontiguousarray(array) if array.dtype.kind in "iuf" else None


def told(partition: Any) -> str:
    dtype = getattr(partition, "dtype", None)
    kind = f"{type(partition).__module__.partition('.')[0]}.{type(partition).__name__}".removeprefix("builtins.")
    return kind if dtype is None else f"{kind} of {dtype}"
