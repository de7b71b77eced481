# SPDX-License-Identifier: Apache-2.0
"""The ifuncs of threechains.dask.shuffle_reduce(). They are compiled at the client, when the first groups are asked for.

Each takes its arrays as named data of a node. A group has a number, in the order in which its key was found.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np

from threechains import _signature
from threechains._errors import ArgumentTypeError
from threechains._ifunc import Ifunc, ifunc
from threechains._signature import Parameter
from threechains._types import Failure, array, data

HASH = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: it spreads keys that follow each other
HIGH_BITS, ONE = np.uint64(32), np.uint64(1)
BOUNDS = "bounds"  # the names of the data of each_group()


def column_data(place: int) -> str:
    return f"column{place}"


def value_data(place: int) -> str:
    return f"value{place}"


@functools.cache
def compiled(function: Any) -> Ifunc:
    """One of the functions below."""
    return ifunc(function)


# ---- Rows and groups ----------------------------------------------------------------------------------------

KEYS = Annotated[Any, data("keys", np.int64, readonly=True)]
FOUND = Annotated[Any, data("found", np.int64)]
GROUPS = Annotated[Any, data("groups", np.uint32)]
GROUPS_READ = Annotated[Any, data("groups", np.uint32, readonly=True)]
SLOTS = Annotated[Any, data("slots", np.int32)]
COUNTS = Annotated[Any, data("counts", np.int64)]
COUNTS_READ = Annotated[Any, data("counts", np.int64, readonly=True)]
STARTS = Annotated[Any, data("starts", np.int64)]
PLACES = Annotated[Any, data("places", np.int64)]
PLACES_READ = Annotated[Any, data("places", np.int64, readonly=True)]
SOURCE = Annotated[Any, data("source", np.uint8, readonly=True)]
TARGET = Annotated[Any, data("target", np.uint8)]
ROWS = Annotated[Any, data("rows", np.uint8, readonly=True)]
BYTES = Annotated[Any, array(np.uint8)]


def find_groups(begin: int, used: int, is_grown: bool, keys: KEYS, groups: GROUPS, slots: SLOTS, found: FOUND,
                counts: COUNTS) -> tuple[int, int]:
    """The group of each row from `begin` on, until there is no room for a further key. Answers how many groups and rows are done.

    `slots` is a hash table: the number of a group plus one; 0 is free. `is_grown` says that it is empty, and `found` is not.
    """
    mask = np.uint64(len(slots) - 1)
    if is_grown:
        for group in range(used):
            place = ((np.uint64(found[group]) * HASH) >> HIGH_BITS) & mask
            while slots[place] != 0:
                place = (place + ONE) & mask
            slots[place] = group + 1
    for row in range(begin, len(keys)):
        key = keys[row]
        place = ((np.uint64(key) * HASH) >> HIGH_BITS) & mask
        while slots[place] != 0 and found[slots[place] - 1] != key:
            place = (place + ONE) & mask
        if slots[place] == 0:
            if used == len(found):
                return used, row
            found[used] = key
            used += 1
            slots[place] = used
        group = slots[place] - 1
        groups[row] = group
        counts[group] += 1
    return used, len(keys)


def place_rows(groups: GROUPS_READ, starts: STARTS, places: PLACES) -> int:
    """Where each row goes, so that those of a group follow each other. `starts` has where the next row of each group goes."""
    for row in range(len(groups)):
        group = groups[row]
        places[row] = starts[group]
        starts[group] += 1
    return len(groups)


def copy_runs(item: int, source: SOURCE, target: TARGET, counts: COUNTS_READ, places: PLACES_READ) -> int:
    """Copies runs of elements that follow each other in `source` to the places that they have in `target`."""
    at = np.uint64(0)  # what has no sign is no index from the end, and the loop becomes one of vectors
    for run in range(len(counts)):
        place, size = np.uint64(places[run] * item), np.uint64(counts[run] * item)
        for byte in range(size):
            target[place + byte] = source[at + byte]
        at += size
    return len(counts)


def fetch(begin: int, end: int, rows: ROWS) -> BYTES:
    """Bytes of what a worker keeps for the owners of groups."""
    return rows[begin:end]


# ---- The user's function, once for each group ---------------------------------------------------------------


def columns_of(kernel: Ifunc) -> dict[str, Any]:
    """The columns of a table that an ifunc takes, by name, with their types. Raises where these are no plain numbers."""
    assert kernel._signature is not None
    found: dict[str, Any] = {}
    for parameter in kernel._signature.parameters:
        if parameter.kind == "data":
            raise ArgumentTypeError(f"{kernel.name}: '{parameter.name}' is an array when groups are of the rows of a table: annotate it "
                                    f"with threechains.dask.column('NAME', np.{parameter.dtype.name})", parameter.name)
        if parameter.kind == "column":
            name = _column_name(parameter)
            if parameter.nulls or parameter.dtype.kind not in "iuf":
                raise ArgumentTypeError(f"{kernel.name}: column '{name}' has nulls, texts or bits when the columns of groups are plain "
                                        "numbers: annotate it with a type of numbers, without nulls=True", parameter.name)
            if found.setdefault(name, parameter.dtype) != parameter.dtype:
                raise ArgumentTypeError(f"{kernel.name}: column '{name}' is {found[name]} and {parameter.dtype}: take it as one type",
                                        parameter.name)
    return found


@functools.lru_cache(maxsize=64)
def each_group(kernel: Ifunc) -> Ifunc:
    """An ifunc that calls `kernel` for each group: the rows between two bounds of columns in which those of a group follow each other."""
    signature, answer = kernel._signature, kernel._answer
    assert signature is not None and answer is not None
    if answer.kind not in ("number", "tuple"):
        raise ArgumentTypeError(f"{kernel.name} returns no number and no tuple of numbers, which is what a group has: return one", "kernel")
    _check_is_here(kernel)
    names, annotations, passed = list(columns_of(kernel).items()), {}, []
    for parameter in signature.parameters:
        if parameter.kind == "column":
            place = [name for name, _ in names].index(_column_name(parameter))
            passed.append(f"_column{place}[_begin:_end]")
        else:
            annotations[parameter.name] = _signature._annotation(parameter)
            passed.append(parameter.name)
    annotations["_bounds"] = data(BOUNDS, np.int64, readonly=True)
    annotations |= {f"_column{place}": data(column_data(place), dtype, readonly=True) for place, (_, dtype) in enumerate(names)}
    annotations |= {f"_value{place}": data(value_data(place), dtype) for place, dtype in enumerate(answer.dtypes)}
    values = ", ".join(f"_value{place}[_group]" for place in range(len(answer.dtypes)))
    lines = [f"def {kernel.name}({', '.join(annotations)}):",
             "    for _group in range(len(_bounds) - 1):",
             "        _begin, _end = _bounds[_group], _bounds[_group + 1]",
             f"        {values}{',' * (answer.kind == 'tuple')} = _kernel({', '.join(passed)})",
             "    return len(_bounds) - 1"]
    return _made(kernel.name, lines, {**annotations, "return": int}, {"_kernel": kernel})


# ---- The user's function, with partitions that are held in place --------------------------------------------


def arrays_of(kernel: Ifunc) -> dict[str, Any]:
    """The arrays of a partition that an ifunc takes, by the names of columns ("" is the partition), with their types."""
    assert kernel._signature is not None
    if any(parameter.kind == "column" for parameter in kernel._signature.parameters):
        return columns_of(kernel)
    return {"": parameter.dtype for parameter in kernel._signature.parameters if parameter.kind == "data"}


@functools.lru_cache(maxsize=64)
def on_rows(kernel: Ifunc) -> Ifunc:
    """An ifunc that calls `kernel` with arrays of the table `held`. After the arguments, it takes the row of each array."""
    from threechains import _calls

    assert kernel._signature is not None
    _check_is_here(kernel)
    scope: dict[str, Any] = {"_kernel": kernel, "_Failure": Failure}
    annotations: dict[str, Any] = {}
    passed, rows = [], list(arrays_of(kernel).items())
    lines = []
    for place, (_, dtype) in enumerate(rows):
        scope[f"_array_at_{place}"] = _calls.array_at(dtype)
        lines += [f"    if _row_{place} < 0 or 2 * _row_{place} >= len(_held) or _held[2 * _row_{place}] == 0:",
                  "        raise _Failure(1, 'the worker holds this partition no more')",
                  f"    _array_{place} = _array_at_{place}(_held[2 * _row_{place}], _held[2 * _row_{place} + 1])"]
    for parameter in kernel._signature.parameters:
        if parameter.kind in ("data", "column"):
            name = _column_name(parameter) if parameter.kind == "column" else ""
            passed.append(f"_array_{[name for name, _ in rows].index(name)}")
        else:
            annotations[parameter.name] = _signature._annotation(parameter)
            passed.append(parameter.name)
    annotations |= {f"_row_{place}": int for place in range(len(rows))}
    annotations["_held"] = data("held", np.int64, readonly=True)
    lines = [f"def {kernel.name}({', '.join(annotations)}):", *lines, f"    return _kernel({', '.join(passed)})"]
    return _made(kernel.name, lines, annotations, scope)


def _check_is_here(kernel: Ifunc) -> None:
    if vars(kernel).get("__wrapped__") is None:
        raise ArgumentTypeError(f"ifunc '{kernel.name}' was loaded or unpickled, and its Python function is to be compiled into another one: "
                                "give the function that @tc.ifunc decorates in this process", "kernel")


def _made(name: str, lines: list[str], annotations: dict[str, Any], scope: dict[str, Any]) -> Ifunc:
    exec("\n".join(lines), scope)
    function = scope[name]
    function.__annotations__ = annotations
    return ifunc(function)


def _column_name(parameter: Parameter) -> str:
    return parameter.data_name.partition(".")[2]
