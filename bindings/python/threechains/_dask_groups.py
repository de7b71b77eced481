# SPDX-License-Identifier: Apache-2.0
"""Groups of the rows that Dask workers hold. Needs no Dask; dask.py has the part that does.

Each worker sorts the rows of its partitions by their groups, and keeps them for the owners of the groups. Each owner fetches its
groups from the nodes of all workers by an ifunc, puts the rows of each group together, and calls the user's function for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from threechains import _dask, _dask_kernels
from threechains._cluster import Cluster
from threechains._errors import ArgumentTypeError, ArgumentValueError, Error, Status
from threechains._ifunc import Ifunc
from threechains._node import Node

if TYPE_CHECKING:
    from threechains._dask import PartitionNode, WorkerNodes

_FETCH_BYTES = 16 << 20  # of one answer: larger ones are not faster, and each takes so much memory at both sides
_FIRST_GROUPS = 1 << 11
_GROWTH = 4
_SLOTS_FOR_EACH = 2  # of the hash table
_ALIGNMENT = 16


@dataclass(frozen=True)
class Plan:
    """What is to be done with the groups."""

    kernel: str  # its name
    columns: dict[str, Any]  # that the kernel takes, with their types
    key: str
    values: tuple[Any, ...]  # the types of what it answers
    arguments: tuple[Any, ...]
    owners: int
    find_groups: Ifunc
    place_rows: Ifunc
    copy_runs: Ifunc
    fetch: Ifunc
    each_group: Ifunc

    @staticmethod
    def of(kernel: Ifunc, key: str, arguments: tuple[Any, ...], owners: int) -> Plan:
        assert kernel._answer is not None
        compiled = _dask_kernels.compiled
        return Plan(kernel.name, _dask_kernels.columns_of(kernel), key, kernel._answer.dtypes, arguments, owners,
                    compiled(_dask_kernels.find_groups), compiled(_dask_kernels.place_rows), compiled(_dask_kernels.copy_runs),
                    compiled(_dask_kernels.fetch), _dask_kernels.each_group(kernel))


@dataclass(frozen=True)
class Kept:
    """What a worker keeps for the owners, and where."""

    address: str  # of the node that has it
    key_type: Any
    is_frame: bool  # of pandas
    groups: tuple[int, ...]  # of owner i: groups[i] to groups[i + 1]
    rows: tuple[int, ...]

    def areas(self, plan: Plan) -> list[tuple[int, int, Any]]:
        """Of the keys, the counts of rows, and each column: where it begins, how many elements it has, and of what type."""
        areas, at = [], 0
        int64 = np.dtype(np.int64)
        for count, dtype in [(self.groups[-1], int64)] * 2 + [(self.rows[-1], dtype) for dtype in plan.columns.values()]:
            areas.append((at, count, dtype))
            at += -(-count * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT  # up to the next one
        return areas

    def ranges(self, plan: Plan, owner: int) -> list[tuple[int, int, Any]]:
        """The bytes of each area that one owner takes, and their type."""
        bounds = [self.groups] * 2 + [self.rows] * len(plan.columns)
        return [(at + of[owner] * dtype.itemsize, at + of[owner + 1] * dtype.itemsize, dtype)
                for (at, _, dtype), of in zip(self.areas(plan), bounds)]


class RowsLostError(Error):
    """The node that kept the rows of some groups is gone."""

    def __init__(self, source: int, told: str) -> None:
        super().__init__(Status.DISCONNECTED, told)
        self.source = source  # its number among those that keep rows

    def __reduce__(self) -> tuple[Any, ...]:
        return RowsLostError, (self.source, self.message)


# ---- At each worker: rows in the order of their groups ------------------------------------------------------


class Keeper:
    """A node that has a worker's rows for the owners of their groups."""

    def __init__(self, nodes: WorkerNodes, plan: Plan, partitions: Sequence[Any]) -> None:
        tables = [_Table(plan, partition) for partition in partitions]
        with nodes.taken() as local:
            groups, numbers = _numbered(local, plan, tables)
            order, group_bounds = _by_owner(groups.found, plan.owners)
            counts = groups.counts[order]
            ends = np.cumsum(counts)
            row_bounds = np.concatenate([[0], ends])[group_bounds]
            self._node = nodes.listening()
            self.kept = Kept(self._node.address, tables[0].key_type, tables[0].is_frame, tuple(group_bounds.tolist()),
                             tuple(row_bounds.tolist()))
            areas = self.kept.areas(plan)
            self._memory = np.empty(areas[-1][0] + areas[-1][1] * areas[-1][2].itemsize, np.uint8)
            views = [_view(self._memory, at, at + count * dtype.itemsize, dtype) for at, count, dtype in areas]
            views[0][:], views[1][:] = groups.found[order], counts
            starts = np.empty_like(ends)
            starts[order] = ends - counts
            for table, its_numbers in zip(tables, numbers):
                _place(local, plan, table, its_numbers, starts, views[2:])
        if self._memory.size:
            self._node.expose("rows", self._memory)

    def ranges(self, plan: Plan, owner: int) -> list[Any]:
        """The keys, the counts and the columns of one owner, as they lie here."""
        return [_view(self._memory, begin, end, dtype) for begin, end, dtype in self.kept.ranges(plan, owner)]

    def close(self) -> None:
        self._node.close()


class _Table:
    """The columns of a partition that are needed, as arrays."""

    def __init__(self, plan: Plan, partition: Any) -> None:
        self.is_frame = _dask.is_frame(partition)
        if not self.is_frame:
            if not _dask.is_table(partition):
                raise ArgumentTypeError(f"{plan.kernel}: the partition is {_dask.told(partition)} when groups are of the rows of a table: let "
                                        "the partitions be data frames of pandas, or tables of Arrow or Polars", "partition")
            import pyarrow

            partition = pyarrow.table(partition)
        self._partition = partition
        self._kernel = plan.kernel
        keys = self._column(plan.key)
        self.key_type = keys.dtype
        if keys.dtype.kind not in "iubmM":
            raise ArgumentTypeError(f"{plan.kernel}: the key '{plan.key}' is {keys.dtype} when keys are whole numbers or dates: give a "
                                    "column of numbers that stand for its values", "key")
        self.keys = np.ascontiguousarray(keys).view(np.int64) if keys.dtype.itemsize == 8 else keys.astype(np.int64)
        self.columns = [self._column(name, dtype) for name, dtype in plan.columns.items()]

    def _column(self, name: str, dtype: Any = None) -> Any:
        names = self._partition.columns if self.is_frame else self._partition.column_names
        if name not in names:
            raise ArgumentValueError(f"{self._kernel}: the partition has no column '{name}': it has {', '.join(map(repr, names))}", name)
        column = self._partition[name]
        if not self.is_frame and column.null_count:
            raise ArgumentValueError(f"{self._kernel}: column '{name}' has {column.null_count} nulls, which groups do not take: drop these "
                                     "rows, or fill them", name)
        array = column.to_numpy()
        if dtype is not None and array.dtype != dtype:
            raise ArgumentTypeError(f"{self._kernel}: column '{name}' is {array.dtype} when the function takes {dtype}: annotate it with "
                                    f"{array.dtype}, or convert the column", name)
        return array


class _Groups:
    """The keys that were found, and how many rows each has."""

    def __init__(self, local: PartitionNode, plan: Plan) -> None:
        self._local, self._plan = local, plan
        self._used = 0
        self._found = np.empty(_FIRST_GROUPS, np.int64)
        self._counts = np.zeros(_FIRST_GROUPS, np.int64)
        self._slots = np.zeros(_FIRST_GROUPS * _SLOTS_FOR_EACH, np.int32)

    @property
    def found(self) -> Any:
        return self._found[: self._used]

    @property
    def counts(self) -> Any:
        return self._counts[: self._used]

    def numbers_of(self, keys: Any) -> Any:
        """The number of the group of each key."""
        numbers = np.empty(len(keys), np.uint32)
        done, is_grown = 0, False
        while done < len(keys):
            self._used, done = self._local.run(self._plan.find_groups, (done, self._used, is_grown), {
                "keys": keys, "groups": numbers, "slots": self._slots, "found": self._found, "counts": self._counts})
            is_grown = done < len(keys)
            if is_grown:
                self._grow()
        return numbers

    def _grow(self) -> None:
        size = len(self._found) * _GROWTH
        found, counts = np.empty(size, np.int64), np.zeros(size, np.int64)
        found[: self._used], counts[: self._used] = self.found, self.counts
        self._found, self._counts, self._slots = found, counts, np.zeros(size * _SLOTS_FOR_EACH, np.int32)


def _numbered(local: PartitionNode, plan: Plan, tables: Sequence[_Table]) -> tuple[_Groups, list[Any]]:
    groups = _Groups(local, plan)
    for table in tables:
        if table.key_type != tables[0].key_type:
            raise ArgumentTypeError(f"{plan.kernel}: the key '{plan.key}' is {tables[0].key_type} in one partition and {table.key_type} in "
                                    "another one: convert them to one type", "key")
    return groups, [groups.numbers_of(table.keys) for table in tables]


def _by_owner(found: Any, owners: int) -> tuple[Any, Any]:
    """The groups in the order of their owners, and where the groups of each begin. All workers agree on the owner of a key."""
    owner = (((found.view(np.uint64) * _dask_kernels.HASH) >> np.uint64(48)) * np.uint64(owners)) >> np.uint64(16)
    ends = np.cumsum(np.bincount(owner.astype(np.int64), minlength=owners))
    return np.argsort(owner, kind="stable"), np.concatenate([[0], ends])


def _place(local: PartitionNode, plan: Plan, table: _Table, numbers: Any, starts: Any, views: Sequence[Any]) -> None:
    """Puts the rows of one partition where they belong."""
    if not len(numbers):
        return
    places = np.empty(len(numbers), np.int64)
    local.run(plan.place_rows, (), {"groups": numbers, "starts": starts, "places": places})
    for view, column in zip(views, table.columns):
        view[places] = column


def _view(memory: Any, begin: int, end: int, dtype: Any) -> Any:
    return memory[begin:end].view(dtype)


# ---- At the owner of groups ---------------------------------------------------------------------------------


def reduced(nodes: WorkerNodes, plan: Plan, kept: Sequence[Kept], owner: int) -> Any:
    """What the kernel answers for each group of an owner: a table with a row for each group."""
    parts = _fetched(nodes, plan, kept, owner)
    counts = np.concatenate([part[1] for part in parts])
    with nodes.taken() as local:
        groups = _Groups(local, plan)
        numbers = groups.numbers_of(np.concatenate([part[0] for part in parts]))
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(counts[order])
        places = np.empty_like(ends)
        places[order] = ends - counts[order]
        sizes = np.bincount(numbers, weights=counts, minlength=len(groups.found)).astype(np.int64)
        arrays = {_dask_kernels.BOUNDS: np.concatenate([[0], np.cumsum(sizes)])}
        for place, dtype in enumerate(plan.columns.values()):
            arrays[_dask_kernels.column_data(place)] = _together(local, plan, [(part[1], part[2 + place]) for part in parts], places, dtype)
        values = [np.empty(len(groups.found), dtype) for dtype in plan.values]
        if len(groups.found):
            arrays |= {_dask_kernels.value_data(place): array for place, array in enumerate(values)}
            local.run(plan.each_group, plan.arguments, arrays)
    return _answer(plan, kept[0], groups.found, values)


def _together(local: PartitionNode, plan: Plan, parts: Sequence[tuple[Any, Any]], places: Any, dtype: Any) -> Any:
    """A column in which the rows of each group follow each other."""
    column = np.empty(sum(len(rows) for _, rows in parts), dtype)
    at = 0
    for counts, rows in parts:
        if len(counts):
            local.run(plan.copy_runs, (dtype.itemsize,), {
                "source": rows.view(np.uint8), "target": column.view(np.uint8), "counts": counts, "places": places[at : at + len(counts)]})
        at += len(counts)
    return column


def _fetched(nodes: WorkerNodes, plan: Plan, kept: Sequence[Kept], owner: int) -> list[list[Any]]:
    """The keys, the counts and the columns of the owner's groups, of each worker that keeps some."""
    parts: list[list[Any]] = []
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(nodes.calling())
        for source, one in enumerate(kept):
            keeper = nodes.keeper_at(one.address)
            if keeper is not None:
                parts.append(keeper.ranges(plan, owner))
                continue
            try:
                parts.append(_fetched_from(node, plan, one, owner))
                nodes.count_fetched(sum(array.nbytes for array in parts[-1]))
            except Error as error:
                raise RowsLostError(source, f"{plan.kernel}: the rows of some groups cannot be had from the node at {one.address}: "
                                    f"{error}") from None
    return parts


def _fetched_from(node: Node, plan: Plan, one: Kept, owner: int) -> list[Any]:
    ranges = one.ranges(plan, owner)
    arrays = [np.empty(end - begin, np.uint8) for begin, end, _ in ranges]
    with Cluster([one.address], node=node) as source:
        pieces = [(array[at : at + _FETCH_BYTES], begin + at) for array, (begin, _, _) in zip(arrays, ranges)
                  for at in range(0, array.size, _FETCH_BYTES)]
        answers = [source[0].submit(plan.fetch, begin, begin + piece.size, deadline=None) for piece, begin in pieces]
        for (piece, _), answer in zip(pieces, answers):
            piece[:] = answer.result()
    return [array.view(dtype) for array, (_, _, dtype) in zip(arrays, ranges)]


def _answer(plan: Plan, kept: Kept, found: Any, values: Sequence[Any]) -> Any:
    keys = found.view(kept.key_type) if kept.key_type.itemsize == 8 else found.astype(kept.key_type)
    names = [plan.kernel] if len(values) == 1 else [f"{plan.kernel}_{place}" for place in range(len(values))]
    if kept.is_frame:
        import pandas

        return pandas.DataFrame(dict(zip(names, values)), index=pandas.Index(keys, name=plan.key))
    import pyarrow

    return pyarrow.table({plan.key: keys, **dict(zip(names, values))})
