# SPDX-License-Identifier: Apache-2.0
"""Groups of the rows that Dask workers hold. Needs no Dask; dask.py has the part that does.

Each worker sorts the rows of its partitions by their groups, and keeps them for the owners of the groups. Each owner fetches its
groups from the nodes of all workers by an ifunc, puts the rows of each group together, and calls the user's function for it.

Where the user says how two answers for one group are combined, each worker calls the function for the groups of its own partitions.
It keeps the answers then, and no rows; the owners combine them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
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


@dataclass(frozen=True)
class Plan:
    """What is to be done with the groups."""

    kernel: str  # its name
    columns: dict[str, Any]  # that the kernel takes, with their types
    key: str
    values: tuple[Any, ...]  # the types of what it answers
    owners: int
    find_groups: Ifunc
    place_rows: Ifunc
    copy_runs: Ifunc
    fetch: Ifunc
    each_group: Ifunc
    combine_groups: Ifunc | None  # None: the kernel is to have all rows of a group at once


@dataclass(frozen=True)
class Piece:
    """An array of which each owner takes a part."""

    number: int  # of what the worker holds
    dtype: Any
    bounds: tuple[int, ...]  # of owner i: the elements bounds[i] to bounds[i + 1]


@dataclass(frozen=True)
class Kept:
    """What a worker keeps for the owners: keys; counts of rows and columns, or answers; for texts as keys, their lengths and bytes."""

    address: str  # of its node
    key_type: Any
    is_frame: bool  # of pandas
    pieces: tuple[Piece, ...]


class RowsLostError(Error):
    """The rows of some groups are where they were kept no more."""

    def __init__(self, source: int, told: str) -> None:
        super().__init__(Status.DISCONNECTED, told)
        self.source = source  # its number among those that keep rows

    def __reduce__(self) -> tuple[Any, ...]:
        return RowsLostError, (self.source, self.message)


# ---- At each worker: rows in the order of their groups ------------------------------------------------------


def keep(nodes: WorkerNodes, plan: Plan, key: Any, partitions: Sequence[Any], arguments: tuple[Any, ...]) -> Kept:
    """Holds what the owners need of the groups in these partitions, until nodes.drop(key)."""
    tables = [_Table(plan, partition) for partition in partitions]
    check_keys(plan, tables)
    with nodes.taken() as local:
        found, bounds, arrays = _rows(local, plan, tables) if plan.combine_groups is None else _answers(local, plan, tables, arguments)
    arrays = [(found, bounds), *arrays]
    if tables[0].texts is not None:
        lengths, text = _written(found, _one_dictionary(plan, [table.texts or {} for table in tables]))
        arrays += [(lengths, bounds), (text, _bounds_of(lengths)[bounds])]
    holder = nodes.holder()
    numbers = holder.hold(key, [array.view(np.uint8) for array, _ in arrays])
    pieces = (Piece(number, array.dtype, tuple(its_bounds.tolist())) for number, (array, its_bounds) in zip(numbers, arrays))
    return Kept(holder.address, tables[0].key_type, tables[0].is_frame, tuple(pieces))


def _rows(local: PartitionNode, plan: Plan, tables: Sequence[_Table]) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """The keys in the order of their owners, where those of each owner begin, and all rows in that order."""
    groups = _Groups(local, plan)
    numbers = [groups.numbers_of(table.keys) for table in tables]
    order, bounds = _by_owner(groups.found, plan.owners)
    counts = groups.counts[order]
    row_bounds = _bounds_of(counts)
    starts = np.empty_like(counts)
    starts[order] = row_bounds[:-1]
    columns = [np.empty(int(row_bounds[-1]), dtype) for dtype in plan.columns.values()]
    for table, its_numbers in zip(tables, numbers):
        _place(local, plan, table, its_numbers, starts, columns)
    return groups.found[order], bounds, [(counts, bounds), *((column, row_bounds[bounds]) for column in columns)]


def _answers(local: PartitionNode, plan: Plan, tables: Sequence[_Table],
             arguments: tuple[Any, ...]) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """The keys in the order of their owners, where those of each owner begin, and what the kernel answers for the rows of each."""
    found, values = _combined(local, plan, [_answered(local, plan, table, arguments) for table in tables])
    order, bounds = _by_owner(found, plan.owners)
    return found[order], bounds, [(value[order], bounds) for value in values]


def _answered(local: PartitionNode, plan: Plan, table: _Table, arguments: tuple[Any, ...]) -> list[Any]:
    """The keys of one partition, and the kernel's answers for their rows."""
    groups = _Groups(local, plan)
    numbers = groups.numbers_of(table.keys)
    bounds = _bounds_of(groups.counts)
    columns = [np.empty(len(numbers), dtype) for dtype in plan.columns.values()]
    _place(local, plan, table, numbers, bounds[:-1].copy(), columns)
    return [groups.found, *_called(local, plan, arguments, bounds, columns)]


def check_keys(plan: Plan, given: Sequence[_Table] | Sequence[Kept]) -> None:
    """Raises where the keys are of several types."""
    for one in given:
        if one.key_type != given[0].key_type:
            types = ["text" if each.key_type.kind == "U" else str(each.key_type) for each in (given[0], one)]
            raise ArgumentTypeError(f"{plan.kernel}: the key '{plan.key}' is {types[0]} in one partition and {types[1]} in another one: "
                                    "convert them to one type", "key")


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
        self.texts: dict[int, bytes] | None = None  # by the numbers that stand for them
        self.key_type, self.keys = self._keys(plan.key)
        self.columns = [self._column(name, dtype) for name, dtype in plan.columns.items()]

    def _keys(self, name: str) -> tuple[Any, Any]:
        """The type of the keys, and a number for each."""
        column = self._given(name)
        if _is_text(column):
            return np.dtype(str), self._numbers_of_texts(name, column)
        keys = column.to_numpy()
        if keys.dtype.kind not in "iubmM":
            raise ArgumentTypeError(f"{self._kernel}: the key '{name}' is {keys.dtype} when keys are whole numbers, dates or texts: give a "
                                    "column of numbers that stand for its values", "key")
        return keys.dtype, np.ascontiguousarray(keys).view(np.int64) if keys.dtype.itemsize == 8 else keys.astype(np.int64)

    def _numbers_of_texts(self, name: str, column: Any) -> Any:
        """Each text is hashed once, whatever the count of rows that have it."""
        if self.is_frame:
            import pandas

            codes, texts = pandas.factorize(column)
        else:
            encoded = column.combine_chunks()
            encoded = encoded if hasattr(encoded, "dictionary") else encoded.dictionary_encode()
            codes, texts = encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()
        if len(codes) and codes.min() < 0:
            raise self._nulls(name, int((codes < 0).sum()))
        wrong = next((text for text in texts if not isinstance(text, str)), None)
        if wrong is not None:
            raise ArgumentTypeError(f"{self._kernel}: the key '{name}' has a {type(wrong).__name__} when keys are whole numbers, dates or "
                                    "texts: convert the column to one of them", "key")
        octets = [text.encode() for text in texts]
        numbers = np.array([_number_of(text) for text in octets], np.int64)
        self.texts = _one_dictionary_of(self._kernel, zip(numbers.tolist(), octets))
        return numbers[codes] if len(numbers) else np.empty(0, np.int64)

    def _column(self, name: str, dtype: Any) -> Any:
        array = np.ascontiguousarray(self._given(name).to_numpy())
        if array.dtype != dtype:
            raise ArgumentTypeError(f"{self._kernel}: column '{name}' is {array.dtype} when the function takes {dtype}: annotate it with "
                                    f"{array.dtype}, or convert the column", name)
        return array

    def _given(self, name: str) -> Any:
        names = self._partition.columns if self.is_frame else self._partition.column_names
        if name not in names:
            raise ArgumentValueError(f"{self._kernel}: the partition has no column '{name}': it has {', '.join(map(repr, names))}", name)
        column = self._partition[name]
        if not self.is_frame and column.null_count:
            raise self._nulls(name, column.null_count)
        return column

    def _nulls(self, name: str, count: int) -> ArgumentValueError:
        return ArgumentValueError(f"{self._kernel}: column '{name}' has {count} nulls, which groups do not take: drop these rows, or fill "
                                  "them", name)


def _is_text(column: Any) -> bool:
    """A column of pandas or of Arrow, as texts, or as anything that pandas keeps as objects and categories."""
    kind = getattr(column, "type", None)
    if kind is None:
        return not isinstance(column.dtype, np.dtype) and column.dtype.kind not in "iubfmM" or column.dtype.kind == "O"
    import pyarrow

    value = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    return bool(pyarrow.types.is_string(value) or pyarrow.types.is_large_string(value) or pyarrow.types.is_string_view(value))


# ---- Texts as keys ------------------------------------------------------------------------------------------
#
# A number stands for a text. That two texts of one collection have the same number is possible, as it is that a file has the content
# id of another one; it is noticed, and an error.


def _number_of(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)


def _one_dictionary_of(kernel: str, pairs: Iterable[tuple[int, bytes]]) -> dict[int, bytes]:
    texts: dict[int, bytes] = {}
    for number, text in pairs:
        if texts.setdefault(number, text) != text:
            raise Error(Status.UNSUPPORTED, f"{kernel}: the keys {texts[number]!r} and {text!r} have the same hash, and cannot be told from "
                        "each other: give a column of numbers that stand for the texts")
    return texts


def _one_dictionary(plan: Plan, dictionaries: Iterable[dict[int, bytes]]) -> dict[int, bytes]:
    return _one_dictionary_of(plan.kernel, (pair for one in dictionaries for pair in one.items()))


def _written(found: Any, texts: dict[int, bytes]) -> tuple[Any, Any]:
    """The lengths of the texts of keys, and all their bytes."""
    octets = [texts[number] for number in found.tolist()]
    return np.array([len(one) for one in octets], np.int64), np.frombuffer(b"".join(octets), np.uint8)


def _read(part: Sequence[Any]) -> dict[int, bytes]:
    """The texts of the keys of one part."""
    keys, lengths, text = part[0], part[-2], part[-1].tobytes()
    ends = np.cumsum(lengths)
    return {number: text[end - length : end] for number, length, end in zip(keys.tolist(), lengths.tolist(), ends.tolist())}


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


def _by_owner(found: Any, owners: int) -> tuple[Any, Any]:
    """The groups in the order of their owners, and where the groups of each begin. All workers agree on the owner of a key."""
    owner = (((found.view(np.uint64) * HASH) >> np.uint64(48)) * np.uint64(owners)) >> np.uint64(16)
    return np.argsort(owner, kind="stable"), _bounds_of(np.bincount(owner.astype(np.int64), minlength=owners))


def _bounds_of(counts: Any) -> Any:
    """Where each of several runs begins when they follow each other, and where the last one ends."""
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    return bounds


def _place(local: PartitionNode, plan: Plan, table: _Table, numbers: Any, starts: Any, columns: Sequence[Any]) -> None:
    """Puts the rows of one partition where they belong. `starts` has where the next row of each group goes."""
    ways = (word for given, placed in zip(table.columns, columns) for word in (_at(given), _at(placed)))
    local.run(plan.place_rows, (_at(numbers), _at(starts), len(numbers), len(starts), len(columns[0]), *ways))


def _at(array: Any) -> int:
    """Its address, for an ifunc that runs in this process while the array is kept."""
    return int(array.ctypes.data)


# ---- At the owner of groups ---------------------------------------------------------------------------------


def reduced(nodes: WorkerNodes, plan: Plan, arguments: tuple[Any, ...], kept: Sequence[Kept], owner: int) -> Any:
    """What the kernel answers for each group of an owner: a table with a row for each group."""
    parts = [_part(nodes, plan, source, one, owner) for source, one in enumerate(kept)]
    with nodes.taken() as local:
        found, values = _of_rows(local, plan, arguments, parts) if plan.combine_groups is None else _combined(local, plan, parts)
    return _answer(plan, kept[0].is_frame, _keys(plan, kept[0].key_type, found, parts), values)


def _of_rows(local: PartitionNode, plan: Plan, arguments: tuple[Any, ...], parts: Sequence[Sequence[Any]]) -> tuple[Any, list[Any]]:
    """The keys, and the kernel's answers for all rows of each, which are in several parts."""
    counts = np.concatenate([part[1] for part in parts])
    groups = _Groups(local, plan)
    numbers = groups.numbers_of(np.concatenate([part[0] for part in parts]))
    order = np.argsort(numbers, kind="stable")
    places = np.empty_like(counts)
    places[order] = _bounds_of(counts[order])[:-1]
    bounds = _bounds_of(np.bincount(numbers, weights=counts, minlength=len(groups.found)).astype(np.int64))
    columns = [_together(local, plan, [(part[1], part[2 + place]) for part in parts], places, dtype)
               for place, dtype in enumerate(plan.columns.values())]
    return groups.found, _called(local, plan, arguments, bounds, columns)


def _called(local: PartitionNode, plan: Plan, arguments: tuple[Any, ...], bounds: Any, columns: Sequence[Any]) -> list[Any]:
    """The kernel's answers for groups, of which each has the rows between two bounds."""
    groups = len(bounds) - 1
    values = [np.empty(groups, dtype) for dtype in plan.values]
    local.run(plan.each_group, (*arguments, _at(bounds), groups, *map(_at, columns), *map(_at, values)))
    return values


def _combined(local: PartitionNode, plan: Plan, parts: Sequence[Sequence[Any]]) -> tuple[Any, list[Any]]:
    """The keys of all parts, and one answer for each."""
    assert plan.combine_groups is not None
    groups = _Groups(local, plan)
    numbers = groups.numbers_of(np.concatenate([part[0] for part in parts]))
    given = [np.concatenate([part[1 + place] for part in parts]) for place in range(len(plan.values))]
    values = [np.empty(len(groups.found), dtype) for dtype in plan.values]
    local.run(plan.combine_groups, (_at(numbers), len(numbers), *map(_at, given), len(groups.found), *map(_at, values)))
    return groups.found, values


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
    """The owner's part of each array that one worker has kept."""
    if kept.address == nodes.holder().address:
        arrays = [nodes.holder().array(piece.number) for piece in kept.pieces]
        if any(array is None for array in arrays):
            raise RowsLostError(source, f"{plan.kernel}: the rows of some groups are kept no more: ask for the groups again")
        return [array.view(piece.dtype)[piece.bounds[owner] : piece.bounds[owner + 1]] for array, piece in zip(arrays, kept.pieces)]
    try:
        return _fetched(nodes, plan, kept, owner)
    except Error as error:
        nodes.forget(kept.address)
        raise RowsLostError(source, f"{plan.kernel}: the rows of some groups cannot be had from the node at {kept.address}: "
                            f"{error}") from None


def _fetched(nodes: WorkerNodes, plan: Plan, kept: Kept, owner: int) -> list[Any]:
    node = nodes.peer(kept.address)
    arrays, answers = [], []
    for piece in kept.pieces:
        begin, end = (piece.bounds[i] * piece.dtype.itemsize for i in (owner, owner + 1))
        arrays.append(np.empty(end - begin, np.uint8))
        for at in range(0, end - begin, _FETCH_BYTES):
            there = arrays[-1][at : at + _FETCH_BYTES]
            answers.append((there, node.submit(plan.fetch, piece.number, begin + at, begin + at + there.size, deadline=None)))
    for there, answer in answers:
        there[:] = answer.result()
    nodes.count_fetched(sum(array.nbytes for array in arrays))
    return [array.view(piece.dtype) for array, piece in zip(arrays, kept.pieces)]


def _keys(plan: Plan, key_type: Any, found: Any, parts: Sequence[Sequence[Any]]) -> Any:
    """The keys of groups, as they were in the partitions."""
    if key_type.kind == "U":
        texts = _one_dictionary(plan, map(_read, parts))
        return [texts[number].decode() for number in found.tolist()]
    return found.view(key_type) if key_type.itemsize == 8 else found.astype(key_type)


def _answer(plan: Plan, is_frame: bool, keys: Any, values: Sequence[Any]) -> Any:
    names = [plan.kernel] if len(values) == 1 else [f"{plan.kernel}_{place}" for place in range(len(values))]
    if is_frame:
        import pandas

        return pandas.DataFrame(dict(zip(names, values)), index=pandas.Index(keys, name=plan.key))
    import pyarrow

    return pyarrow.table({plan.key: pyarrow.array(keys, pyarrow.string() if isinstance(keys, list) else None),
                          **dict(zip(names, values))})
