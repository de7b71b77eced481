# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow tables in ifuncs written in Python: `tc.column`.

What is found at the target is checked against the size of the data before it is used, as <threechains/arrow.h> does it for C.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.extending import intrinsic, make_attribute_wrapper, models, overload, overload_method, register_model
from numba.np import arrayobj, numpy_support

from threechains._arrow import SUFFIX as SUFFIX
from threechains._arrow import type_code
from threechains._signature import Parameter
from threechains._target import c_string

_MAGIC = int.from_bytes(b"TCCOLS1\0", "little")
_HEADER_WORDS, _ENTRY_WORDS = 2, 11  # of 8 bytes
_MOST_ROWS = 1 << 56
REFUSALS = {
    1: "this node has no column '{name}'",
    2: "column '{name}' of this node is of another type than {type}",
    3: "column '{name}' of this node has nulls: take it with nulls=True, and ask is_valid(i)",
    4: "column '{name}' of this node is longer than the data that it lies in",
}
_INT64 = ir.IntType(64)
_POINTER = ir.IntType(8).as_pointer()


def _read_only(scalar: Any) -> types.Array:
    return types.Array(scalar, 1, "C", readonly=True)


_OCTETS, _WORDS = _read_only(types.uint8), _read_only(types.int64)


class ColumnType(types.Type):
    """Of numbers that may be null, of bits, or of texts (`scalar` is None)."""

    def __init__(self, kind: str, scalar: Any) -> None:
        self.kind, self.scalar = kind, scalar  # kind: number, bit, text
        super().__init__(name=f"column of {kind}s" if scalar is None else f"column of {scalar}")


@register_model(ColumnType)
class _ColumnModel(models.StructModel):
    def __init__(self, dmm: Any, fe_type: ColumnType) -> None:
        values = fe_type.scalar or types.uint8
        # A text's bytes are the values, and its offsets are of one of two widths.
        members = [("values", _read_only(values)), ("validity", _OCTETS), ("length", types.intp),
                   ("narrow", _read_only(types.int32)), ("wide", _WORDS)]
        super().__init__(dmm, fe_type, members)


for _member in ("validity", "length", "narrow", "wide"):
    make_attribute_wrapper(ColumnType, _member, f"_{_member}")
make_attribute_wrapper(ColumnType, "values", "values")


def type_of(parameter: Parameter) -> types.Type:
    kind = parameter.dtype.kind
    if kind == "S":
        return ColumnType("text", None)
    if kind == "b":
        return ColumnType("bit", None)
    scalar = numpy_support.from_dtype(parameter.dtype)
    return ColumnType("number", scalar) if parameter.nulls else _read_only(scalar)


def name_of(parameter: Parameter) -> str:
    return {"S": "str", "b": "bool"}.get(parameter.dtype.kind, str(parameter.dtype))


# ---- What a column can do -----------------------------------------------------------------------------------


@overload(len)
def _len(column: Any) -> Any:
    def length(column: Any) -> Any:
        return column._length

    return length if isinstance(column, ColumnType) else None


@overload_method(ColumnType, "is_valid")
def _is_valid(column: Any, row: Any) -> Any:
    def is_valid(column: Any, row: Any) -> Any:
        i = np.intp(row)
        if i < 0 or i >= column._length:
            raise IndexError("the column has no such row")
        return len(column._validity) == 0 or (column._validity[i >> 3] >> (i & 7)) & 1 != 0

    return is_valid


@overload(operator.getitem)
def _getitem(column: Any, row: Any) -> Any:
    if not isinstance(column, ColumnType) or not isinstance(row, types.Integer):
        return None

    def number(column: Any, row: Any) -> Any:
        i = np.intp(row)
        if i < 0 or i >= column._length:
            raise IndexError("the column has no such row")
        return column.values[i]

    def bit(column: Any, row: Any) -> Any:
        i = np.intp(row)
        if i < 0 or i >= column._length:
            raise IndexError("the column has no such row")
        return (column.values[i >> 3] >> (i & 7)) & 1 != 0

    def text(column: Any, row: Any) -> Any:
        i = np.intp(row)
        if i < 0 or i >= column._length:
            raise IndexError("the column has no such row")
        if len(column._narrow) != 0:
            begin, end = np.int64(column._narrow[i]), np.int64(column._narrow[i + 1])
        else:
            begin, end = column._wide[i], column._wide[i + 1]
        if begin < 0 or end < begin or end > len(column.values):
            raise IndexError("a text of the column lies outside of its bytes")
        return column.values[begin:end]

    return {"number": number, "bit": bit, "text": text}[column.kind]


@intrinsic(prefer_literal=True)
def _octets_of(typingctx: Any, words: Any) -> Any:
    """The bytes of a text that is written there, as an array."""
    if not isinstance(words, types.StringLiteral):
        raise errors.TypingError(f"'equals' takes a text that is written there, or an array of bytes, and not {words}")
    octets = words.literal_value.encode()

    def write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        # `octets` and a zero byte, which is not counted.
        data = cgutils.global_constant(builder.module, ".text", c_string(words.literal_value)).bitcast(_POINTER)
        return _array(context, builder, _OCTETS, data, _INT64(len(octets)))

    return _OCTETS(words), write


@overload_method(ColumnType, "equals", prefer_literal=True)
def _equals(column: Any, row: Any, text: Any) -> Any:
    if column.kind != "text":
        raise errors.TypingError(f"'equals' is for columns of texts, and not for a {column}")

    def to_array(column: Any, row: Any, text: Any) -> Any:
        return _same(column[row], text)

    def to_literal(column: Any, row: Any, text: Any) -> Any:
        return _same(column[row], _octets_of(text))

    if isinstance(text, types.Array):
        return to_array
    if isinstance(text, types.StringLiteral):
        return to_literal
    raise errors.TypingError(f"'equals' takes a text that is written there, or an array of bytes, and not {text}")


def _same(one: Any, other: Any) -> Any:
    raise NotImplementedError


@overload(_same)
def _same_octets(one: Any, other: Any) -> Any:
    def same(one: Any, other: Any) -> Any:
        if len(one) != len(other):
            return False
        for i in range(len(one)):
            if one[i] != other[i]:
                return False
        return True

    return same


# ---- Finding it ---------------------------------------------------------------------------------------------


def find(context: Any, builder: ir.IRBuilder, parameter: Parameter, body: tuple[Any, Any],
         directory: tuple[Any, Any]) -> tuple[Any, Any]:
    """Looks the column up. `body` and `directory` are where the named data is, and its bytes. Gives the parameter's value, and
    0 or the number of a refusal: then the value is not to be used."""
    octets = parameter.data_name.partition(".")[2].encode()
    name = cgutils.global_constant(builder.module, ".column", c_string(octets.decode())).bitcast(_POINTER)
    place, size = directory
    code = parameter.dtype.kind
    width = 0 if code in "bS" else parameter.dtype.itemsize
    numbers = [types.int64] * 4
    found_type = types.UniTuple(types.int64, 8)
    signature = found_type(_WORDS, _OCTETS, _OCTETS, *numbers)
    arguments = [_array(context, builder, _WORDS, place, builder.lshr(size, _INT64(3))),
                 _array(context, builder, _OCTETS, place, size),
                 _array(context, builder, _OCTETS, name, _INT64(len(octets) + 1)),
                 body[1], _INT64(type_code(code, width)), _INT64(0xFF if code == "S" else 0xFFFF),
                 _INT64(1 if parameter.nulls else 0)]
    compiled = context.compile_subroutine(builder, _look_up, signature)
    _, found = context.call_internal_no_propagate(builder, compiled.fndesc, signature, arguments)  # it raises nothing
    outcome, length, *places, width_found = (builder.extract_value(found, i) for i in range(8))
    return _value(context, builder, parameter, body[0], length, places, width_found), outcome


def _look_up(words: Any, octets: Any, name: Any, size: Any, wanted: Any, mask: Any, nulls: Any) -> Any:
    """Compiled by Numba. Gives an outcome, the length, where the buffers begin, and what the offsets' width or the bytes of
    texts are."""
    none = np.int64(0)
    if len(words) < _HEADER_WORDS or words[0] != _MAGIC:
        return (1, none, none, none, none, none, none, none)
    count = words[1]
    if count < 0 or count > (len(words) - _HEADER_WORDS) // _ENTRY_WORDS:
        return (1, none, none, none, none, none, none, none)
    for k in range(count):
        at = _HEADER_WORDS + k * _ENTRY_WORDS
        begin = words[at]
        if begin < 0 or begin > len(octets) - len(name):
            continue
        same = True
        for i in range(len(name)):
            if octets[begin + i] != name[i]:
                same = False
                break
        if not same:
            continue
        kind, length, null_count = words[at + 2], words[at + 3], words[at + 4]
        if kind & mask != wanted:
            return (2, none, none, none, none, none, none, none)
        if null_count != 0 and nulls == 0:
            return (3, none, none, none, none, none, none, none)
        width = kind >> 8
        if length < 0 or length > _MOST_ROWS or width < 0 or width > 8:
            return (4, none, none, none, none, none, none, none)
        bits = (length + 7) >> 3
        needed = bits
        if kind & 0xFF == 0x53:  # texts have an offset more than rows
            if width != 4 and width != 8:
                return (4, none, none, none, none, none, none, none)
            needed = (length + 1) * width if length != 0 else none
        elif width != 0:
            needed = length * width
        for b in range(3):
            place, has = words[at + 5 + 2 * b], words[at + 6 + 2 * b]
            if place < 0 or has < 0 or place > size or has > size - place:
                return (4, none, none, none, none, none, none, none)
        validity_bytes = words[at + 6]
        if (null_count != 0 or validity_bytes != 0) and validity_bytes < bits:
            return (4, none, none, none, none, none, none, none)
        if words[at + 8] < needed or (width != 0 and words[at + 7] & (width - 1) != 0):
            return (4, none, none, none, none, none, none, none)
        validity = words[at + 5] if validity_bytes != 0 else np.int64(-1)
        return (0, length, validity, words[at + 7], words[at + 9], words[at + 10], none, width)
    return (1, none, none, none, none, none, none, none)


def _value(context: Any, builder: ir.IRBuilder, parameter: Parameter, body: Any, length: Any, places: Any, width: Any) -> Any:
    validity, values, texts, text_bytes, _ = places
    kind = type_of(parameter)
    values_at = builder.gep(body, [values])
    if isinstance(kind, types.Array):
        return _array(context, builder, kind, values_at, length)
    bits = builder.lshr(builder.add(length, _INT64(7)), _INT64(3))
    has_validity = builder.icmp_signed(">=", validity, _INT64(0))
    column = cgutils.create_struct_proxy(kind)(context, builder)
    column.length = length
    column.validity = _array(context, builder, _OCTETS, builder.gep(body, [builder.select(has_validity, validity, _INT64(0))]),
                             builder.select(has_validity, bits, _INT64(0)))
    none = _INT64(0)
    narrow = wide = none
    if kind.kind == "text":
        offsets = builder.add(length, _INT64(1))
        is_narrow = builder.icmp_signed("==", width, _INT64(4))
        narrow, wide = builder.select(is_narrow, offsets, none), builder.select(is_narrow, none, offsets)
        column.values = _array(context, builder, _OCTETS, builder.gep(body, [texts]), text_bytes)
    else:
        count = bits if kind.kind == "bit" else length
        column.values = _array(context, builder, _read_only(kind.scalar or types.uint8), values_at, count)
    column.narrow = _array(context, builder, _read_only(types.int32), values_at, narrow)
    column.wide = _array(context, builder, _WORDS, values_at, wide)
    return column._getvalue()


def _array(context: Any, builder: ir.IRBuilder, kind: types.Array, data: Any, count: Any) -> Any:
    array = arrayobj.make_array(kind)(context, builder)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    arrayobj.populate_array(array, builder.bitcast(data, array.data.type), [count], [itemsize], itemsize, meminfo=None)
    return array._getvalue()
