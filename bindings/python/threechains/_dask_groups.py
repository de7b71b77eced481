# SPDX-License-Identifier: Apache-2.0
"""Groups of the rows that Dask workers hold. Needs no Dask; dask.py has the part that does.

Each worker sorts the rows of its partitions by their groups, and keeps them for the owners of the groups. Each owner fetches its
groups from the nodes of all workers by an ifunc, puts the rows of each group together, and calls the user's function for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from threechains import _dask
from threechains._errors import ArgumentTypeError, ArgumentValueError, Error, Status
from threechains._ifunc import Ifunc

if TYPE_CHECKING:
    from threechains._dask import PartitionNode, WorkerNodes

HASH = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: it spreads keys that follow each other
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


@dataclass(frozen=True)
class Sorted:
    """What lies where in the memory of a worker's rows: keys, counts and columns, of one owner after the other."""

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


@dataclass(frozen=True)
class Kept:
    """Where a worker keeps its rows for the owners."""

    address: str  # of its node
    row: int  # of the table of what it holds
    sorted: Sorted


class RowsLostError(Error):
    """The rows of some groups are where they were kept no more."""

    def __init__(self, source: int, told: str) -> None:
        super().__init__(Status.DISCONNECTED, told)
        self.source = source  # its number among those that keep rows

    def __reduce__(self) -> tuple[Any, ...]:
        return RowsLostError, (self.source, self.message)


# ---- At each worker: rows in the order of their groups ------------------------------------------------------


def keep(nodes: WorkerNodes, plan: Plan, key: Any, partitions: Sequence[Any]) -> Kept:
    """Sorts the rows of partitions by groups, and holds them for the owners of the groups until nodes.drop(key)."""
    tables = [_Table(plan, partition) for partition in partitions]
    with nodes.taken() as local:
        groups, numbers = _numbered(local, plan, tables)
        order, group_bounds = _by_owner(groups.found, plan.owners)
        counts = groups.counts[order]
        ends = np.cumsum(counts)
        row_bounds = np.concatenate([[0], ends])[group_bounds]
        first = tables[0]
        sorted_ = Sorted(first.key_type, first.is_frame, tuple(group_bounds.tolist()), tuple(row_bounds.tolist()))
        areas = sorted_.areas(plan)
        memory = np.empty(areas[-1][0] + areas[-1][1] * areas[-1][2].itemsize, np.uint8)
        views = [_view(memory, at, at + count * dtype.itemsize, dtype) for at, count, dtype in areas]
        views[0][:], views[1][:] = groups.found[order], counts
        starts = np.empty_like(ends)
        starts[order] = ends - counts
        for table, its_numbers in zip(tables, numbers):
            _place(local, plan, table, its_numbers, starts, views[2:])
    holder = nodes.holder()
    return Kept(holder.address, holder.hold(key, [memory])[0], sorted_)


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
            self._used, done = self._local.run(self._plan.find_groups, (
                done, self._used, is_grown, _at(keys), _at(numbers), len(keys), _at(self._slots), len(self._slots), _at(self._found),
                _at(self._counts), len(self._found)))
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
    owner = (((found.view(np.uint64) * HASH) >> np.uint64(48)) * np.uint64(owners)) >> np.uint64(16)
    ends = np.cumsum(np.bincount(owner.astype(np.int64), minlength=owners))
    return np.argsort(owner, kind="stable"), np.concatenate([[0], ends])


def _place(local: PartitionNode, plan: Plan, table: _Table, numbers: Any, starts: Any, views: Sequence[Any]) -> None:
    """Puts the rows of one partition where they belong."""
    if not len(numbers):
        return
    places = np.empty(len(numbers), np.int64)
    local.run(plan.place_rows, (_at(numbers), _at(starts), len(starts), _at(places), len(places)))
    for view, column in zip(views, table.columns):
        view[places] = column


def _at(array: Any) -> int:
    """Its address, for an ifunc that runs in this process while the array is kept."""
    return int(array.ctypes.data)


def _view(memory: Any, begin: int, end: int, dtype: Any) -> Any:
    return memory[begin:end].view(dtype)


# ---- At the owner of groups ---------------------------------------------------------------------------------


def reduced(nodes: WorkerNodes, plan: Plan, kept: Sequence[Kept], owner: int) -> Any:
    """What the kernel answers for each group of an owner: a table with a row for each group."""
    parts = [_part(nodes, plan, source, one, owner) for source, one in enumerate(kept)]
    counts = np.concatenate([part[1] for part in parts])
    with nodes.taken() as local:
        groups = _Groups(local, plan)
        numbers = groups.numbers_of(np.concatenate([part[0] for part in parts]))
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(counts[order])
        places = np.empty_like(ends)
        places[order] = ends - counts[order]
        sizes = np.bincount(numbers, weights=counts, minlength=len(groups.found)).astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        columns = [_together(local, plan, [(part[1], part[2 + place]) for part in parts], places, dtype)
                   for place, dtype in enumerate(plan.columns.values())]
        values = [np.empty(len(groups.found), dtype) for dtype in plan.values]
        local.run(plan.each_group, (*plan.arguments, _at(bounds), len(groups.found), *map(_at, columns), *map(_at, values)))
    return _answer(plan, kept[0].sorted, groups.found, values)


def _together(local: PartitionNode, plan: Plan, parts: Sequence[tuple[Any, Any]], places: Any, dtype: Any) -> Any:
    """A column in which the rows of each group follow each other."""
    column = np.empty(sum(len(rows) for _, rows in parts), dtype)
    at = 0
    for counts, rows in parts:
        its_places = places[at : at + len(counts)]
        local.run(plan.copy_runs, (dtype.itemsize, _at(rows), _at(column), column.nbytes, _at(counts), _at(its_places), len(counts)))
        at += len(counts)
    return column


def _part(nodes: WorkerNodes, plan: Plan, source: int, kept: Kept, owner: int) -> list[Any]:
    """The keys, the counts and the columns of the owner's groups that one worker has kept."""
    ranges = kept.sorted.ranges(plan, owner)
    if kept.address == nodes.holder().address:
        memory = nodes.holder().array(kept.row)
        if memory is None:
            raise RowsLostError(source, f"{plan.kernel}: the rows of some groups are kept no more: ask for the groups again")
        return [_view(memory, begin, end, dtype) for begin, end, dtype in ranges]
    try:
        return _fetched(nodes, plan, kept, ranges)
    except Error as error:
        nodes.forget(kept.address)
        raise RowsLostError(source, f"{plan.kernel}: the rows of some groups cannot be had from the node at {kept.address}: "
                            f"{error}") from None


def _fetched(nodes: WorkerNodes, plan: Plan, kept: Kept, ranges: Sequence[tuple[int, int, Any]]) -> list[Any]:
    arrays = [np.empty(end - begin, np.uint8) for begin, end, _ in ranges]
    source = nodes.peer(kept.address)
    pieces = [(array[at : at + _FETCH_BYTES], begin + at) for array, (begin, _, _) in zip(arrays, ranges)
              for at in range(0, array.size, _FETCH_BYTES)]
    answers = [source.submit(plan.fetch, kept.row, begin, begin + piece.size, deadline=None) for piece, begin in pieces]
    for (piece, _), answer in zip(pieces, answers):
        piece[:] = answer.result()
    nodes.count_fetched(sum(array.nbytes for array in arrays))
    return [array.view(dtype) for array, (_, _, dtype) in zip(arrays, ranges)]


def _answer(plan: Plan, kept: Sorted, found: Any, values: Sequence[Any]) -> Any:
    keys = found.view(kept.key_type) if kept.key_type.itemsize == 8 else found.astype(kept.key_type)
    names = [plan.kernel] if len(values) == 1 else [f"{plan.kernel}_{place}" for place in range(len(values))]
    if kept.is_frame:
        import pandas

        return pandas.DataFrame(dict(zip(names, values)), index=pandas.Index(keys, name=plan.key))
    import pyarrow

    return pyarrow.table({plan.key: keys, **dict(zip(names, values))})
