# SPDX-License-Identifier: Apache-2.0
"""What an ifunc written in Python may call at the target: `tc.forward`, `tc.log` and so on, and `tc.external`.

Each is a call of C that Numba writes into the function. Texts are constants, which travel inside the code.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.extending import intrinsic, register_jitable
from numba.np import arrayobj, numpy_support

from threechains import _columns, _types
from threechains._signature import Parameter, Signature, dtype_of
from threechains._target import c_string

INT32, INT64, BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)
POINTER = BYTE.as_pointer()


def numba_type(parameter: Parameter) -> types.Type:
    if parameter.kind == "column":
        return _columns.type_of(parameter)
    scalar = numpy_support.from_dtype(parameter.dtype)
    return scalar if parameter.kind == "scalar" else types.Array(scalar, 1, "C", readonly=parameter.readonly)


def declare(module: ir.Module, symbol: str, result: ir.Type, *arguments: ir.Type, unsigned: Any = ()) -> ir.Function:
    """A C function. `unsigned` are the places of arguments of fewer than 32 bits that are not signed."""
    known = module.globals.get(symbol)
    function = cgutils.get_or_insert_function(module, ir.FunctionType(result, arguments), symbol)
    if known is None:
        for i, (argument, kind) in enumerate(zip(function.args, arguments)):
            # Caller or callee fills a register up, as the architecture says: this fills it up wherever it matters.
            if isinstance(kind, ir.IntType) and kind.width <= 32:
                argument.add_attribute("zeroext" if i in unsigned and kind.width < 32 else "signext")
    return function


def text(module: ir.Module, words: str) -> Any:
    """A text that travels inside the code."""
    return cgutils.global_constant(module, ".text", c_string(words)).bitcast(POINTER)


def _constant(name: str, kind: Any) -> str:
    if not isinstance(kind, types.StringLiteral):
        raise errors.TypingError(f"'{name}' takes a text that is written there, as \"...\", and not {kind}")
    if "\0" in kind.literal_value:
        raise errors.TypingError(f"'{name}' takes a text without zero bytes")
    return str(kind.literal_value)


def _members(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types of what `*arguments` of an intrinsic are."""
    given = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], types.BaseTuple) else arguments
    return tuple(types.unliteral(kind) for kind in given)


def _is_number(kind: Any) -> bool:
    return isinstance(kind, (types.Number, types.Boolean))


def _payload(context: Any, builder: ir.IRBuilder, values: Any, given: Any, kinds: Any) -> tuple[Any, Any]:
    """Where the bytes of an array, or of numbers in slots of 8 bytes, are, and how many. `kinds`: what to make of
    them."""
    if len(kinds) == 1 and isinstance(kinds[0], types.Array):
        array = arrayobj.make_array(kinds[0])(context, builder, values[0])
        return builder.bitcast(array.data, POINTER), builder.mul(array.nitems, array.itemsize)
    place = cgutils.alloca_once(builder, ir.ArrayType(INT64, max(len(kinds), 1)), zfill=True)
    for i, (value, had, kind) in enumerate(zip(values, given, kinds)):
        slot = cgutils.gep_inbounds(builder, place, 0, i)
        target = builder.bitcast(slot, context.get_data_type(kind).as_pointer())
        context.pack_value(builder, kind, context.cast(builder, value, had, kind), target)
    return builder.bitcast(place, POINTER), INT64(8 * len(kinds))


# ---- Travelling on ------------------------------------------------------------------------------------------


def forward_for(signature: Signature) -> Any:
    """`tc.forward` for this ifunc: packs arguments as callers do, and calls tc_forward."""
    travelling = signature.travelling
    kinds = [numba_type(parameter) for parameter in travelling]
    one_array = len(kinds) == 1 and travelling[0].kind == "array"

    @intrinsic
    def forward(typingctx: Any, node: Any, *arguments: Any) -> Any:
        given = _members(arguments)
        fits = len(given) == len(kinds)
        if any(isinstance(kind, types.Array) for kind in kinds):
            fits = fits and one_array and given[0] == kinds[0]
        else:
            fits = fits and all(map(_is_number, given))
        if not fits:
            names = ", ".join(parameter.name for parameter in travelling)
            raise errors.TypingError(f"'tc.forward' of {signature.name} takes (node, {names}), numbers or one array")

        def write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            values = cgutils.unpack_tuple(builder, args[1], len(kinds))
            data, size = _payload(context, builder, values, given, kinds)
            send = declare(builder.module, "tc_forward", INT32, INT32, POINTER, INT64)
            return builder.call(send, [context.cast(builder, args[0], sig.args[0], types.uint32), data, size])

        return types.int32(node, types.StarArgTuple(given)), write

    return forward


def _sent_by_name(symbol: str) -> Any:
    """tc_forward_as or tc_inject."""
    called = symbol.replace("tc_", "tc.")

    @intrinsic(prefer_literal=True)
    def send(typingctx: Any, node: Any, name: Any, *arguments: Any) -> Any:
        words = _constant(called, name)
        given = _members(arguments)
        one_array = len(given) == 1 and isinstance(given[0], types.Array) and given[0].ndim == 1 \
            and given[0].layout == "C"
        if not one_array and not all(map(_is_number, given)):
            raise errors.TypingError(f"'{called}' takes (node, name, ...): after them numbers, or one array in one piece")
        whole = (types.Integer, types.Boolean)
        kinds = given if one_array else tuple(types.int64 if isinstance(kind, whole) else types.float64
                                              for kind in given)

        def write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            values = cgutils.unpack_tuple(builder, args[2], len(given))
            data, size = _payload(context, builder, values, given, kinds)
            function = declare(builder.module, symbol, INT32, INT32, POINTER, POINTER, INT64)
            number = context.cast(builder, args[0], sig.args[0], types.uint32)
            return builder.call(function, [number, text(builder.module, words), data, size])

        return types.int32(types.unliteral(node), name, types.StarArgTuple(given)), write

    return send


# ---- Arrays that are not in the payload ---------------------------------------------------------------------


def array_at(dtype: Any, *, readonly: bool = True) -> Any:
    """`f(address, count)`: the array of this type that lies there."""
    dtype = np.dtype(dtype)
    kind = types.Array(numpy_support.from_dtype(dtype), 1, "C", readonly=readonly)

    @intrinsic
    def view(typingctx: Any, address: Any, count: Any) -> Any:
        def write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            array = arrayobj.make_array(kind)(context, builder)
            itemsize = context.get_constant(types.intp, dtype.itemsize)
            arrayobj.populate_array(array, builder.inttoptr(args[0], array.data.type), [args[1]], [itemsize], itemsize, meminfo=None)
            return array._getvalue()

        return kind(types.int64, types.int64), write

    return view


# ---- Asking the node ----------------------------------------------------------------------------------------


def _number_of(symbol: str) -> Any:
    @intrinsic
    def ask(typingctx: Any) -> Any:
        def write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            return builder.call(declare(builder.module, symbol, INT32), [])

        return types.uint32(), write

    return ask


@intrinsic(prefer_literal=True)
def _has_data(typingctx: Any, name: Any) -> Any:
    words = _constant("tc.has_data", name)

    def write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        find = declare(builder.module, "tc_data", POINTER, POINTER, INT64.as_pointer())
        found = builder.call(find, [text(builder.module, words), INT64.as_pointer()(None)])
        return cgutils.is_not_null(builder, found)

    return types.boolean(name), write


@intrinsic(prefer_literal=True)
def _log(typingctx: Any, level: Any, message: Any) -> Any:
    words = _constant("tc.log", message)
    if not isinstance(level, types.Integer):
        raise errors.TypingError(f"'tc.log' takes (level, message), a whole number first and not {level}")

    def write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        function = declare(builder.module, "tc_log", ir.VoidType(), INT32, POINTER)
        number = context.cast(builder, args[0], sig.args[0], types.int32)
        builder.call(function, [number, text(builder.module, words)])
        return context.get_dummy_value()

    return types.none(types.unliteral(level), message), write


# ---- Functions of C -----------------------------------------------------------------------------------------


def external_for(external: _types.External) -> Any:
    """What calls this function of C."""
    symbol = external.symbol
    wanted = [_external_argument(symbol, given) for given in external.arguments]
    result = types.none if external.result is None else numpy_support.from_dtype(dtype_of(symbol, "result", external.result))

    @intrinsic
    def call(typingctx: Any, *arguments: Any) -> Any:
        given = _members(arguments)
        fits = len(given) == len(wanted) and all(
            had == kind if isinstance(kind, types.Array) else _is_number(had) for had, kind in zip(given, wanted))
        if not fits:
            takes, had = (", ".join(map(str, kinds)) for kinds in (wanted, given))
            raise errors.TypingError(f"'{symbol}' is declared to take ({takes}) and is called with ({had})")

        def write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            values = [_as_in_c(context, builder, value, had, kind) for value, had, kind in
                      zip(cgutils.unpack_tuple(builder, args[0], len(wanted)), given, wanted)]
            unsigned = [i for i, kind in enumerate(wanted)
                        if isinstance(kind, types.Boolean) or (isinstance(kind, types.Integer) and not kind.signed)]
            made = ir.VoidType() if result is types.none else context.get_value_type(result)
            function = declare(builder.module, symbol, made, *(value.type for value in values), unsigned=unsigned)
            answer = builder.call(function, values)
            return context.get_dummy_value() if result is types.none else answer

        return result(types.StarArgTuple(given)), write

    return call


def _as_in_c(context: Any, builder: ir.IRBuilder, value: Any, had: Any, kind: Any) -> Any:
    if isinstance(kind, types.Array):
        return builder.bitcast(arrayobj.make_array(kind)(context, builder, value).data, POINTER)
    return context.cast(builder, value, had, kind)


def _external_argument(symbol: str, given: Any) -> Any:
    if isinstance(given, _types.Array):
        return types.Array(numpy_support.from_dtype(dtype_of(symbol, "an argument", given.dtype)), 1, "C")
    return numpy_support.from_dtype(dtype_of(symbol, "an argument", given))


@register_jitable
def _dot(a: Any, b: Any) -> Any:
    """np.dot without BLAS."""
    if len(a) != len(b):
        raise ValueError("np.dot of arrays of different lengths")
    total = a.dtype.type(0) * b.dtype.type(0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@register_jitable
def _fmod(x: Any, y: Any) -> Any:
    return np.fmod(x, y)


@register_jitable
def _cbrt(x: Any) -> Any:
    return np.cbrt(x)


@register_jitable
def _exp2(x: Any) -> Any:
    return np.exp2(x)


# Functions of `math` that Numba does not know, and NumPy's that are the same.
_OF_MATH = {"fmod": _fmod, "cbrt": _cbrt, "exp2": _exp2}

MEANINGS: dict[Any, Any] = {
    **{getattr(math, name): meaning for name, meaning in _OF_MATH.items() if hasattr(math, name)},
    np.dot: _dot,
    np.inner: _dot,
    _types.node_id: _number_of("tc_id"),
    _types.node_count: _number_of("tc_count"),
    _types.forward_as: _sent_by_name("tc_forward_as"),
    _types.inject: _sent_by_name("tc_inject"),
    _types.has_data: _has_data,
    _types.log: _log,
}
