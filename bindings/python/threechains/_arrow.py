# SPDX-License-Identifier: Apache-2.0
"""Tables of Arrow's as named data, and answers as Arrow's arrays.

A table is two pieces of named data: the bytes of its columns ("trips"), and a directory that says which column lies where
("trips.columns"; its form is in include/threechains/arrow.h). An IPC file is such bytes already, and is mapped. The columns of
a table or of a Parquet file are written to a file in memory, one after the other.
"""

from __future__ import annotations

import mmap
import os
import pathlib
from typing import Any

from threechains import _native
from threechains._errors import Error, Status

SUFFIX = ".columns"
# From the buffer protocol's letters to Arrow's.
_LETTERS = {"b": "c", "B": "C", "h": "s", "H": "S", "i": "i", "I": "I", "l": "l", "L": "L", "q": "l", "Q": "L", "e": "e", "f": "f",
            "d": "g"}


# ---- What is given ------------------------------------------------------------------------------------------


def is_table(value: Any) -> bool:
    """A table of pyarrow's, or of another library that offers its tables by Arrow's protocol (Polars, pandas)."""
    return hasattr(value, "__arrow_c_stream__")


def kind_of_file(path: str | os.PathLike[str]) -> str:
    """"ipc" or "parquet", by how the file begins; "" for all others."""
    if not os.path.isfile(path):
        return ""  # who maps it says why not
    try:
        with open(path, "rb") as file:
            begin = file.read(8)
    except OSError:
        return ""
    return "ipc" if begin[:6] == b"ARROW1" else "parquet" if begin[:4] == b"PAR1" else ""


def type_code(kind: str, size: int) -> int:
    return ord(kind) | size << 8


def _tables() -> Any:
    """The part that needs NumPy and pyarrow."""
    try:
        from threechains import _tables
    except ImportError as error:
        raise Error(Status.UNSUPPORTED, f"tables of Arrow's need pyarrow: {error}; pip install pyarrow numpy") from None
    return _tables


def check_name(name: str) -> None:
    if not name or "." in name or "\0" in name:
        raise ValueError(f"a table cannot be named {name!r}: tc.column(\"NAME.COLUMN\", ...) has the first dot behind its name")


def columns_of(path: str | os.PathLike[str]) -> bytes:
    """The directory of an Arrow IPC file, for nodes that are started by `ifunc serve`: write it to a file, and give them
    both, `--data trips=trips.arrow:ro --data trips.columns=FILE:ro`."""
    if kind_of_file(path) != "ipc":
        raise ValueError(f"{os.fspath(path)} is no Arrow IPC file")
    return bytes(_tables().describe(path))


def in_memory(value: Any) -> tuple[Any, bytes]:
    """Memory with the columns of a table or file, for this process's node, and the directory."""
    if not is_table(value) and kind_of_file(value) == "ipc":
        with open(value, "rb") as given:
            return mmap.mmap(given.fileno(), 0, access=mmap.ACCESS_READ), columns_of(value)
    with open(os.memfd_create("threechains"), "w+b") as file:
        directory = bytes(_tables().write(value, file))
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), directory


# ---- For the nodes of a cluster -----------------------------------------------------------------------------


def files(name: str, value: Any, count: int, directory: pathlib.Path) -> list[tuple[str, str]] | None:
    """Named data of `count` nodes as (name, FILE of `--data`) pairs; what must be written is written to `directory`. None when
    it is no table. `{id}` in a path is the node's number."""
    if is_table(value):
        paths: list[Any] = [value]
    elif isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        paths = [text.replace("{id}", str(i)) for i in range(count)] if "{id}" in text else [text]
        kinds = {kind_of_file(path) for path in paths}
        if not kinds & {"ipc", "parquet"}:
            return None
        if len(kinds) > 1:
            raise ValueError(f"'{name}': not all of {text} are Arrow IPC files, or Parquet files")
    else:
        return None
    check_name(name)
    mapped = not is_table(value) and kind_of_file(paths[0]) == "ipc"
    made = f"table-{len(list(directory.iterdir()))}"
    for i, one in enumerate(paths):
        if mapped:
            described = columns_of(one)
        else:
            with open(directory / f"{made}-{i}", "wb") as file:
                described = _tables().write(one, file)
        (directory / f"{made}-{i}{SUFFIX}").write_bytes(described)
    number = "{id}" if not is_table(value) and "{id}" in os.fspath(value) else "0"
    body = os.path.abspath(value) if mapped else str(directory / f"{made}-{number}")
    return [(name, f"{body}:ro"), (name + SUFFIX, f"{directory / made}-{number}{SUFFIX}:ro")]


# ---- Answers ------------------------------------------------------------------------------------------------


class ArrowArray:
    """An answer for libraries that take Arrow's C data interface. Made by `as_arrow`."""

    def __init__(self, answer: Any, format: str, itemsize: int) -> None:
        self._answer, self._format, self._itemsize = answer, format, itemsize

    def __len__(self) -> int:
        return memoryview(self._answer).nbytes // self._itemsize

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return _native.arrow_array(self._answer, self._format, len(self))


def as_arrow(answer: Any) -> ArrowArray:
    """What `submit` answers, an array of numbers or a `Reply` (as bytes), for Arrow: `pyarrow.array(tc.as_arrow(answer))`,
    or whatever else takes the C data interface. Nothing is copied; the answer lives as long as what is made of it."""
    if isinstance(answer, _native.Reply):
        return ArrowArray(answer, "C", 1)
    try:
        view = memoryview(answer)
    except TypeError:
        raise TypeError(f"as_arrow takes an array of numbers or a Reply, and not {type(answer).__name__}") from None
    if view.ndim != 1 or not view.c_contiguous:
        raise TypeError(f"as_arrow takes an array of one dimension, in one piece, and not of shape {view.shape}, strides "
                        f"{view.strides}")
    if view.format not in _LETTERS:
        raise TypeError(f"as_arrow: an array of format '{view.format}' has another form in Arrow; it takes whole numbers and floats")
    return ArrowArray(answer, _LETTERS[view.format], view.itemsize)
