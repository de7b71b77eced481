# SPDX-License-Identifier: Apache-2.0
"""The ifuncs of threechains.dask, beside the user's own. They are compiled at the client when they are needed first, by Numba.

Those that a worker calls at its own node take the addresses of arrays. Those that come from elsewhere take numbers of arrays
in the node's table `held` (_dask_held.py), which has the addresses and lengths of what the worker holds for others.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np

from threechains import _signature
from threechains._calls import array_at
from threechains._dask_groups import HASH
from threechains._dask_held import ROW_MASK, TABLE, WORDS
from threechains._errors import ArgumentTypeError
from threechains._ifunc import Ifunc, ifunc
from threechains._signature import Parameter
from threechains._types import Failure, array, data

HIGH_BITS, ONE = np.uint64(32), np.uint64(1)
HELD = Annotated[Any, data(TABLE, np.int64, readonly=True)]
BYTES = Annotated[Any, array(np.uint8)]

int64s, uint32s, bytes_at = array_at(np.int64), array_at(np.uint32), array_at(np.uint8)
int64s_out, int32s_out = array_at(np.int64, readonly=False), array_at(np.int32, readonly=False)
uint32s_out, bytes_out = array_at(np.uint32, readonly=False), array_at(np.uint8, readonly=False)


@functools.cache
def compiled(function: Any) -> Ifunc:
    """One of the functions below."""
    return ifunc(function)


# ---- Rows and groups ----------------------------------------------------------------------------------------


def find_groups(begin: int, used: int, is_grown: bool, keys_at: int, groups_at: int, rows: int, slots_at: int, slot_count: int, found_at: int,
                counts_at: int, room: int) -> tuple[int, int]:
    """The group of each row from `begin` on, until there is no room for a further key. Answers how many groups and rows are done.

    A group has a number, in the order in which its key was found. `slots` is a hash table: the number of a group plus one; 0 is free.
    `is_grown` says that it is empty, and `found` is not.
    """
    keys, groups = int64s(keys_at, rows), uint32s_out(groups_at, rows)
    slots, found, counts = int32s_out(slots_at, slot_count), int64s_out(found_at, room), int64s_out(counts_at, room)
    mask = np.uint64(slot_count - 1)
    if is_grown:
        for group in range(used):
            place = ((np.uint64(found[group]) * HASH) >> HIGH_BITS) & mask
            while slots[place] != 0:
                place = (place + ONE) & mask
            slots[place] = group + 1
    for row in range(begin, rows):
        key = keys[row]
        place = ((np.uint64(key) * HASH) >> HIGH_BITS) & mask
        while slots[place] != 0 and found[slots[place] - 1] != key:
            place = (place + ONE) & mask
        if slots[place] == 0:
            if used == room:
                return used, row
            found[used] = key
            used += 1
            slots[place] = used
        group = slots[place] - 1
        groups[row] = group
        counts[group] += 1
    return used, rows


def copy_runs(item: int, source_at: int, target_at: int, size: int, counts_at: int, places_at: int, runs: int) -> int:
    """Copies runs of elements that follow each other in `source` to the places that they have in `target`."""
    source, target = bytes_at(source_at, size), bytes_out(target_at, size)
    counts, places = int64s(counts_at, runs), int64s(places_at, runs)
    at = np.uint64(0)  # what has no sign is no index from the end, and the loop becomes one of vectors
    for run in range(runs):
        place, length = np.uint64(places[run] * item), np.uint64(counts[run] * item)
        for byte in range(length):
            target[place + byte] = source[at + byte]
        at += length
    return runs


def fetch(number: int, begin: int, end: int, held: HELD) -> BYTES:
    """Bytes of what a worker keeps for the owners of groups."""
    at = (number & ROW_MASK) * WORDS
    if at >= len(held) or held[at + 2] != number or held[at] == 0 or held[at + 1] < end:
        raise Failure(1, "the worker keeps these rows no more")
    return bytes_at(held[at], held[at + 1])[begin:end]


@functools.lru_cache(maxsize=64)
def place_rows(dtypes: tuple[Any, ...]) -> Ifunc:
    """An ifunc that puts rows with columns of these types where they belong, so that those of a group follow each other.

    It takes the addresses of the group of each row and of where the next row of each group goes, the counts of rows, of groups and of
    the places for rows, and for each column the addresses of the rows and of the places.
    """
    scope: dict[str, Any] = {"_groups_in": uint32s, "_starts_in": int64s_out, "_uint64": np.uint64}
    annotations = dict.fromkeys(["_groups_at", "_starts_at", "_rows", "_group_count", "_room", "return"], int)
    lines = ["    _groups, _starts = _groups_in(_groups_at, _rows), _starts_in(_starts_at, _group_count)"]
    for place, dtype in enumerate(dtypes):
        scope |= {f"_in_{place}": array_at(dtype), f"_out_{place}": array_at(dtype, readonly=False)}
        annotations |= {f"_from_{place}": int, f"_to_{place}": int}
        lines.append(f"    _given_{place}, _placed_{place} = _in_{place}(_from_{place}, _rows), _out_{place}(_to_{place}, _room)")
    lines += ["    for _row in range(_rows):",
              "        _group = _groups[_row]",
              "        _at = _uint64(_starts[_group])",  # what has no sign is no index from the end
              "        _starts[_group] += 1",
              *(f"        _placed_{place}[_at] = _given_{place}[_row]" for place in range(len(dtypes))),
              "    return _rows"]
    return _made("place_rows", lines, annotations, scope)


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
                raise ArgumentTypeError(f"{kernel.name}: column '{name}' has nulls, texts or bits when columns are taken here as plain "
                                        "numbers: annotate it with a type of numbers, without nulls=True", parameter.name)
            if found.setdefault(name, parameter.dtype) != parameter.dtype:
                raise ArgumentTypeError(f"{kernel.name}: column '{name}' is {found[name]} and {parameter.dtype}: take it as one type",
                                        parameter.name)
    return found


@functools.lru_cache(maxsize=64)
def each_group(kernel: Ifunc) -> Ifunc:
    """An ifunc that calls `kernel` for each group: the rows between two bounds of columns in which those of a group follow each other.

    After the arguments, it takes the address of the bounds, the count of groups, and the addresses of columns and answers.
    """
    signature, answer = kernel._signature, kernel._answer
    assert signature is not None and answer is not None
    if answer.kind not in ("number", "tuple"):
        raise ArgumentTypeError(f"{kernel.name} returns no number and no tuple of numbers, which is what a group has: return one", "kernel")
    _check_is_here(kernel)
    columns = columns_of(kernel)
    scope: dict[str, Any] = {"_kernel": kernel, "_bounds_in": int64s}
    annotations, passed = _passed(kernel, {name: f"_column_{place}[_begin:_end]" for place, name in enumerate(columns)})
    annotations |= {"_bounds_at": int, "_groups": int}
    lines = ["    _bounds = _bounds_in(_bounds_at, _groups + 1)"]
    for place, dtype in enumerate(columns.values()):
        scope[f"_column_in_{place}"] = array_at(dtype)
        annotations[f"_column_at_{place}"] = int
        lines.append(f"    _column_{place} = _column_in_{place}(_column_at_{place}, _bounds[_groups])")
    for place, dtype in enumerate(answer.dtypes):
        scope[f"_value_out_{place}"] = array_at(dtype, readonly=False)
        annotations[f"_value_at_{place}"] = int
        lines.append(f"    _value_{place} = _value_out_{place}(_value_at_{place}, _groups)")
    values = ", ".join(f"_value_{place}[_group]" for place in range(len(answer.dtypes)))
    lines += ["    for _group in range(_groups):",
              "        _begin, _end = _bounds[_group], _bounds[_group + 1]",
              f"        {values}{',' * (answer.kind == 'tuple')} = _kernel({passed})",
              "    return _groups"]
    return _made(kernel.name, lines, {**annotations, "return": int}, scope)


@functools.lru_cache(maxsize=64)
def combine_groups(combine: Ifunc) -> Ifunc:
    """An ifunc that makes one answer for each group of many, by `combine`, which makes one of two.

    It takes the address of the group of each answer, the count of answers, and their addresses; the count of groups, and the addresses
    of the results. The numbers of groups are in the order in which they come first.
    """
    assert combine._answer is not None
    _check_is_here(combine)
    scope: dict[str, Any] = {"_combine": combine, "_numbers_in": uint32s}
    dtypes = combine._answer.dtypes
    given, made = ([f"_{what}_at_{place}" for place in range(len(dtypes))] for what in ("given", "value"))
    annotations = dict.fromkeys(["_numbers_at", "_count", *given, "_groups", *made, "return"], int)
    lines = ["    _numbers = _numbers_in(_numbers_at, _count)"]
    for place, dtype in enumerate(dtypes):
        scope |= {f"_given_in_{place}": array_at(dtype), f"_value_out_{place}": array_at(dtype, readonly=False)}
        lines += [f"    _given_{place} = _given_in_{place}({given[place]}, _count)",
                  f"    _value_{place} = _value_out_{place}({made[place]}, _groups)"]
    ones, others = ([f"_{what}_{place}[{at}]" for place in range(len(dtypes))] for what, at in (("value", "_group"), ("given", "_row")))
    lines += ["    _used = 0",
              "    for _row in range(_count):",
              "        _group = _numbers[_row]",
              "        if _group == _used:",
              "            _used += 1",
              *(f"            {one} = {other}" for one, other in zip(ones, others)),
              "        else:",
              f"            {', '.join(ones)}{',' * (combine._answer.kind == 'tuple')} = _combine({', '.join([*ones, *others])})",
              "    return _used"]
    return _made(combine.name, lines, annotations, scope)


# ---- The user's function, with arrays that are not named data -----------------------------------------------


def arrays_of(kernel: Ifunc) -> dict[str, Any]:
    """The arrays of a partition that an ifunc takes, by the names of columns ("" is the partition), with their types."""
    assert kernel._signature is not None
    if any(parameter.kind == "column" for parameter in kernel._signature.parameters):
        return columns_of(kernel)
    return {"": parameter.dtype for parameter in kernel._signature.parameters if parameter.kind == "data"}


@functools.lru_cache(maxsize=64)
def on_rows(kernel: Ifunc) -> Ifunc:
    """An ifunc that calls `kernel` with arrays of the table `held`. After the arguments, it takes the number of each array."""
    _check_is_here(kernel)
    arrays = arrays_of(kernel)
    scope: dict[str, Any] = {"_kernel": kernel, "_Failure": Failure, "_ROW_MASK": ROW_MASK, "_WORDS": WORDS}
    annotations, passed = _passed(kernel, {name: f"_array_{place}" for place, name in enumerate(arrays)})
    lines = []
    for place, dtype in enumerate(arrays.values()):
        scope[f"_array_in_{place}"] = array_at(dtype)
        annotations[f"_number_{place}"] = int
        lines += [f"    _at = (_number_{place} & _ROW_MASK) * _WORDS",
                  f"    if _at >= len(_held) or _held[_at + 2] != _number_{place} or _held[_at] == 0:",
                  "        raise _Failure(1, 'the worker holds this partition no more')",
                  f"    _array_{place} = _array_in_{place}(_held[_at], _held[_at + 1])"]
    lines.append(f"    return _kernel({passed})")
    return _made(kernel.name, lines, {**annotations, "_held": HELD}, scope)


@functools.lru_cache(maxsize=64)
def on_arrays(kernel: Ifunc) -> Ifunc | None:
    """An ifunc that calls `kernel` with arrays of its own process. After the arguments, it takes the address and the length of each.

    None: it must have its data by name, as its Python function is not here, or its columns are no plain arrays.
    """
    try:
        _check_is_here(kernel)
        arrays = arrays_of(kernel)
    except ArgumentTypeError:
        return None
    scope: dict[str, Any] = {"_kernel": kernel}
    annotations, passed = _passed(kernel, {name: f"_array_in_{place}(_at_{place}, _count_{place})" for place, name in enumerate(arrays)})
    for place, dtype in enumerate(arrays.values()):
        scope[f"_array_in_{place}"] = array_at(dtype)
        annotations |= {f"_at_{place}": int, f"_count_{place}": int}
    return _made(kernel.name, [f"    return _kernel({passed})"], annotations, scope)


def _check_is_here(kernel: Ifunc) -> None:
    if vars(kernel).get("__wrapped__") is None:
        raise ArgumentTypeError(f"ifunc '{kernel.name}' was loaded or unpickled, and its Python function is to be compiled into another one: "
                                "give the function that @tc.ifunc decorates in this process", "kernel")


def _passed(kernel: Ifunc, arrays: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The parameters of `kernel` that are not of the partition, and the arguments of a call, with these words for its arrays."""
    assert kernel._signature is not None
    annotations: dict[str, Any] = {}
    passed = []
    for parameter in kernel._signature.parameters:
        if parameter.kind in ("data", "column"):
            passed.append(arrays[_column_name(parameter) if parameter.kind == "column" else ""])
        else:
            annotations[parameter.name] = _signature._annotation(parameter)
            passed.append(parameter.name)
    return annotations, ", ".join(passed)


def _made(name: str, lines: list[str], annotations: dict[str, Any], scope: dict[str, Any]) -> Ifunc:
    exec("\n".join([f"def {name}({', '.join(name for name in annotations if name != 'return')}):", *lines]), scope)
    function = scope[name]
    function.__annotations__ = annotations
    return ifunc(function)


def _column_name(parameter: Parameter) -> str:
    return parameter.data_name.partition(".")[2]
