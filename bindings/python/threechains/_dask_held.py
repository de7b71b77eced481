# SPDX-License-Identifier: Apache-2.0
"""Arrays that a Dask worker holds for others, in place. Needs no Dask; dask.py has the part that does.

The worker has a node whose data `held` is a table: the address and the length of each array, and its number. A call names the arrays
by their numbers, so one name is enough for all of them. A number is never used again, though its row of the table is: who comes too
late gets an error, and no array of somebody else.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from threechains import _dask
from threechains._errors import ArgumentTypeError

if TYPE_CHECKING:
    from threechains._dask import WorkerNodes

TABLE = "held"
WORDS = 3  # of a row: address, length, number
ROW_BITS = 28  # of a number; those above say how many arrays came before it
ROW_MASK = (1 << ROW_BITS) - 1
_FIRST_ROWS = 1 << 10


@dataclass(frozen=True)
class Rows:
    """Where a worker has the arrays of some partitions."""

    address: str  # of its node
    partitions: tuple[dict[str, tuple[int, Any]], ...]  # of each: the number and the type of each column


class Holder:
    """The arrays of one worker. Any thread may use it."""

    def __init__(self, nodes: WorkerNodes) -> None:
        self._lock = threading.Lock()
        self._node = nodes.listening()
        self.address = self._node.address
        self._table = np.zeros(_FIRST_ROWS * WORDS, np.int64)
        self._free = list(range(_FIRST_ROWS - 1, -1, -1))
        self._held: dict[Any, dict[int, Any]] = {}  # by the key of who holds them: numbers and their arrays
        self._count = 0  # of all arrays so far
        self._node.expose(TABLE, self._table)

    def hold(self, key: Any, arrays: Sequence[Any]) -> list[int]:
        """The numbers of arrays, which may not go until drop() of the same key."""
        with self._lock:
            numbers = [self._number() for _ in arrays]
            for number, array in zip(numbers, arrays):
                self._table[self._words(number)] = array.ctypes.data, array.size, number
            self._held.setdefault(key, {}).update(zip(numbers, arrays))
        return numbers

    def array(self, number: int) -> Any:
        """What this worker holds there. None: nothing any more."""
        with self._lock:
            return next((arrays[number] for arrays in self._held.values() if number in arrays), None)

    def holds(self, key: Any) -> bool:
        return key in self._held

    def drop(self, key: Any) -> None:
        with self._lock:
            held = self._held.pop(key, {})
            if held:
                table = self._table.copy()
                for number in held:
                    table[self._words(number)] = 0
                self._use(table)  # returns when no call reads the arrays any more
                self._free += [number & ROW_MASK for number in held]

    def close(self) -> None:
        self._node.close()

    def _number(self) -> int:
        if not self._free:
            rows = len(self._table) // WORDS
            self._free = list(range(2 * rows - 1, rows - 1, -1))
            self._use(np.concatenate([self._table, np.zeros_like(self._table)]))
        self._count += 1  # so that no number is 0, which is that of a free row
        return self._count << ROW_BITS | self._free.pop()

    @staticmethod
    def _words(number: int) -> slice:
        row = number & ROW_MASK
        return slice(row * WORDS, (row + 1) * WORDS)

    def _use(self, table: Any) -> None:
        self._node.expose(TABLE, table)
        self._table = table


def held(holder: Holder, key: Any, partitions: Sequence[Any]) -> Rows:
    """Holds the arrays of partitions."""
    found = [_arrays(partition) for partition in partitions]
    numbers = iter(holder.hold(key, [array for arrays in found for array in arrays.values()]))
    return Rows(holder.address, tuple({name: (next(numbers), array.dtype) for name, array in arrays.items()} for arrays in found))


def _arrays(partition: Any) -> dict[str, Any]:
    """The array, or the columns of a table that are plain numbers, by name."""
    if not _dask.is_table(partition):
        array = _dask.array_of("a function", partition)
        if array.ndim != 1:
            raise ArgumentTypeError(f"the partition is an array of shape {array.shape} when functions take arrays of one dimension: give "
                                    "the data as .reshape(-1)", "collection")
        return {_dask.ARRAY: array}
    if not _dask.is_frame(partition):
        import pyarrow

        partition = pyarrow.table(partition)
    names = partition.columns if _dask.is_frame(partition) else partition.column_names
    found = {name: _dask.plain_column(partition, name) for name in names}
    return {name: array for name, array in found.items() if array is not None}
