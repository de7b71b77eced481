# SPDX-License-Identifier: Apache-2.0
"""Where the columns of Arrow tables and files lie, or are written to: the part of _arrow.py that needs NumPy and pyarrow."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from threechains import _arrow
from threechains._errors import Error, Status

_MAGIC = b"TCCOLS1\0"
_HEADER = struct.Struct("<8sQ")
_ENTRY = struct.Struct("<11Q")
# Buffers begin at multiples of it, as in Arrow's own files.
_ALIGNMENT = 64
_FORMATS = {"bool": "b", "int8": "c", "uint8": "C", "int16": "s", "uint16": "S", "int32": "i", "uint32": "I", "int64": "l",
            "uint64": "L", "halffloat": "e", "float": "f", "double": "g", "binary": "z", "large_binary": "Z", "string": "u",
            "large_string": "U", "date32[day]": "tdD", "date64[ms]": "tdm"}
_NOTHING = (0, 0)


@dataclass(frozen=True)
class _Column:
    """An entry of the directory."""

    name: str
    format: str
    type: int
    length: int
    null_count: int
    buffers: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]  # where each begins, and its bytes


def describe(path: str | os.PathLike[str]) -> bytes:
    """The directory of an IPC file."""
    return _directory(_columns_of_ipc(path))


def write(value: Any, file: BinaryIO) -> bytes:
    """Writes the columns of a table, or of the Parquet file at a path, to `file`. Returns the directory."""
    body = _Body(file)
    with contextlib.closing(_columns_given(value)) as given:
        made = [_write_column(body, name, kind, list(chunks)) for name, kind, chunks in given]
    body.end()
    return _directory(made)


# ---- IPC files ----------------------------------------------------------------------------------------------


def _columns_of_ipc(path: str | os.PathLike[str]) -> list[_Column]:
    name = os.fspath(path)
    try:
        with pa.memory_map(name) as source:
            whole = source.read_buffer()
            reader = pa.ipc.open_file(pa.BufferReader(whole))
            if reader.num_record_batches > 1:
                raise ValueError(f"{name} has {reader.num_record_batches} record batches when an ifunc's column is in one piece: "
                                 f"give pyarrow.ipc.open_file({name!r}).read_all(), which is copied, or write the file with "
                                 "one, by write_table(table.combine_chunks(), max_chunksize=table.num_rows)")
            if reader.num_record_batches == 0:
                return [_Column(field.name, _format(field.type), _code(field.type), 0, 0, (_NOTHING,) * 3)
                        for field in reader.schema]
            batch = reader.get_batch(0)
            return [_mapped(name, whole, field, array) for field, array in zip(batch.schema, batch.columns)]
    except pa.ArrowException as error:
        raise Error(Status.MALFORMED, f"{name} is no Arrow IPC file that can be read: {error}") from None


def _mapped(path: str, whole: Any, field: Any, array: Any) -> _Column:
    """Where the buffers of a column of the file's lie in it."""
    code = _code(field.type)
    if code == 0:
        return _Column(field.name, _format(field.type), 0, len(array), array.null_count, (_NOTHING,) * 3)
    places = []
    for buffer in array.buffers():
        if buffer is None or buffer.size == 0:
            places.append(_NOTHING)
            continue
        place = buffer.address - whole.address
        if not 0 <= place <= whole.size - buffer.size:
            raise ValueError(f"{path}: column '{field.name}' cannot be used where it lies: the file is compressed, or of another "
                             f"order of bytes. Give pyarrow.ipc.open_file({path!r}).read_all(), which is copied, or write it with "
                             "pyarrow.ipc.IpcWriteOptions(compression=None)")
        places.append((place, buffer.size))
    places += [_NOTHING] * (3 - len(places))
    if array.null_count == 0:
        places[0] = _NOTHING
    return _Column(field.name, _format(field.type), code, len(array), array.null_count, (places[0], places[1], places[2]))


# ---- Tables and Parquet -------------------------------------------------------------------------------------


def _columns_given(value: Any) -> Generator[tuple[str, Any, Iterable[Any]], None, None]:
    """Name, type and chunks of each column. A Parquet file is decoded column by column, and never as a whole."""
    if _arrow.is_table(value):
        table = value if isinstance(value, pa.Table) else pa.table(value)
        for field, column in zip(table.schema, table.columns):
            yield field.name, field.type, column.chunks
        return
    with pyarrow.parquet.ParquetFile(value) as file:
        schema = file.schema_arrow
        for field in schema:
            if schema.names.count(field.name) > 1 or not _is_usable(field.type):
                yield field.name, field.type, []
                continue
            groups = range(file.num_row_groups)
            yield field.name, field.type, [chunk for group in groups
                                           for chunk in file.read_row_group(group, [field.name]).column(0).chunks]


class _Body:
    """The file that columns are written to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0

    def add(self, pieces: Iterable[Any]) -> tuple[int, int]:
        """Writes the pieces one behind the other. Returns where they begin, and their bytes."""
        self._pad(-self._size % _ALIGNMENT)
        begin = self._size
        for piece in pieces:
            view = memoryview(piece).cast("B")
            self._file.write(view)
            self._size += view.nbytes
        return begin, self._size - begin

    def end(self) -> None:
        self._pad(-self._size % _ALIGNMENT if self._size else _ALIGNMENT)  # what is empty cannot be mapped
        self._file.flush()

    def _pad(self, count: int) -> None:
        self._file.write(bytes(count))
        self._size += count


def _write_column(body: _Body, name: str, given: Any, chunks: list[Any]) -> _Column:
    """Writes the column's chunks as one."""
    kind = _plain(given)
    if kind is not given:
        chunks = [chunk.dictionary_decode() if hasattr(chunk, "dictionary_decode") else chunk.cast(kind) for chunk in chunks]
    code, length, nulls = _code(kind), sum(map(len, chunks)), sum(chunk.null_count for chunk in chunks)
    if code == 0:
        return _Column(name, _format(kind), 0, length, nulls, (_NOTHING,) * 3)
    validity = body.add([_bits(chunks, 0)]) if nulls else _NOTHING
    width = code >> 8
    if code & 255 == ord("b"):
        return _Column(name, "b", code, length, nulls, (validity, body.add([_bits(chunks, 1)]), _NOTHING))
    if code & 255 == ord("S"):
        offsets, texts = _texts(name, chunks, width)
        return _Column(name, _format(kind), code, length, nulls, (validity, body.add([offsets]), body.add(texts)))
    values = (_part(chunk.buffers()[1], width * chunk.offset, width * len(chunk)) for chunk in chunks)
    return _Column(name, _format(kind), code, length, nulls, (validity, body.add(values), _NOTHING))


def _part(buffer: Any, begin: int, size: int) -> Any:
    return memoryview(buffer)[begin : begin + size] if size else b""


def _bits(chunks: list[Any], number: int) -> Any:
    """The bits of this buffer of all chunks. Where a chunk has no validity, all its rows are valid."""
    parts = []
    for chunk in chunks:
        buffer = chunk.buffers()[number]
        if buffer is None:
            parts.append(np.ones(len(chunk), np.uint8))
            continue
        first = chunk.offset // 8
        octets = np.frombuffer(_part(buffer, first, (chunk.offset + len(chunk) + 7) // 8 - first), np.uint8)
        parts.append(np.unpackbits(octets, bitorder="little")[chunk.offset % 8 :][: len(chunk)])
    return np.packbits(np.concatenate(parts), bitorder="little") if parts else b""


def _texts(name: str, chunks: list[Any], width: int) -> tuple[Any, list[Any]]:
    """The offsets of all chunks, into one run of bytes, and the pieces of that run."""
    dtype = np.dtype(f"<i{width}")
    made, pieces, total = [np.zeros(1, dtype)], [], 0
    for chunk in chunks:
        if len(chunk) == 0:
            continue
        _, offsets, texts = chunk.buffers()
        own = np.frombuffer(_part(offsets, width * chunk.offset, width * (len(chunk) + 1)), dtype)
        begin, end = int(own[0]), int(own[-1])
        if total + end - begin > np.iinfo(dtype).max:
            raise OverflowError(f"column '{name}' has more than {np.iinfo(dtype).max} bytes of text, which its type cannot hold in "
                                "one piece: cast it to pyarrow.large_string() or large_binary()")
        made.append(own[1:] + dtype.type(total - begin))
        pieces.append(_part(texts, begin, end - begin))
        total += end - begin
    return np.concatenate(made), pieces


# ---- Types --------------------------------------------------------------------------------------------------


def _plain(kind: Any) -> Any:
    """The type as which a column is written: without a dictionary, and with offsets for its texts."""
    if pa.types.is_dictionary(kind) and _code(kind.value_type):
        return kind.value_type
    views = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    return views.get(str(kind), kind)


def _is_usable(kind: Any) -> bool:
    return _code(_plain(kind)) != 0


def _code(kind: Any) -> int:
    """TC_ARROW_TYPE of arrow.h; 0 for what ifuncs cannot use."""
    types = pa.types
    if types.is_boolean(kind):
        return _arrow.type_code("b", 0)
    if types.is_integer(kind) or types.is_floating(kind):
        dtype = np.dtype(kind.to_pandas_dtype())
        return _arrow.type_code(dtype.kind, dtype.itemsize)
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or types.is_duration(kind):
        return _arrow.type_code("i", kind.bit_width // 8)
    if types.is_string(kind) or types.is_binary(kind):
        return _arrow.type_code("S", 4)
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return _arrow.type_code("S", 8)
    return 0


def _format(kind: Any) -> str:
    """Arrow's format string; empty for types that ifuncs cannot use."""
    types = pa.types
    if str(kind) in _FORMATS:
        return _FORMATS[str(kind)]
    if not (types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind)):
        return ""
    letter = {"s": "s", "ms": "m", "us": "u", "ns": "n"}[kind.unit]
    if types.is_timestamp(kind):
        return f"ts{letter}:{kind.tz or ''}"
    return f"tt{letter}" if types.is_time(kind) else f"tD{letter}"


def _directory(given: list[_Column]) -> bytes:
    texts = bytearray()
    entries = []
    begin = _HEADER.size + _ENTRY.size * len(given)
    for column in given:
        places = []
        for text in (column.name, column.format):
            places.append(begin + len(texts))
            texts += text.encode().replace(b"\0", b"?") + b"\0"
        numbers = [number for buffer in column.buffers for number in buffer]
        entries.append(_ENTRY.pack(*places, column.type, column.length, column.null_count, *numbers))
    return b"".join([_HEADER.pack(_MAGIC, len(given)), *entries, bytes(texts) or b"\0"])
