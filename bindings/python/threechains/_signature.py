# SPDX-License-Identifier: Apache-2.0
"""What travels between the caller of a Python ifunc and its code at the target.

The payload: one slot of 8 bytes for each parameter that travels, holding a number, or an array's number of elements;
then the arrays, each at a multiple of 16. A function with one array and nothing else gets the array's bytes alone.
The answer: a number as it lies in memory; a tuple's numbers in slots of 8 bytes; or the bytes of an array.
"""

from __future__ import annotations

import collections.abc
import inspect
import json
import operator
import struct
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from threechains import _native, _types
from threechains._errors import (
    ArgumentError, ArgumentOverflowError, ArgumentTypeError, ArgumentValueError, Error, IfuncError, Status,
)

Encode = Callable[[tuple[Any, ...]], list[Any]]
Decode = Callable[[_native.Reply], Any]
# The ifunc's own memory at every target holds it for as long as the code is kept.
_OUT_BYTES = 64 << 20
_OURS = (_types.Data, _types.Column, _types.Array, _types.Out)
_PYTHON_TYPES: dict[Any, Any] = {int: np.int64, float: np.float64, bool: np.bool_}
# Types of numbers that struct takes as they are, or not at all.
_QUICK = frozenset({int, float, bool, np.float64, np.float32, np.int64, np.int32, np.uint64, np.uint32})


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str  # scalar, array, data, column, out
    dtype: Any
    data_name: str = ""
    count: int = 0
    optional: bool = False
    default: bytes | None = None  # of a parameter that travels: its elements
    only_positional: bool = False
    nulls: bool = False
    readonly: bool = False

    @property
    def travels(self) -> bool:
        return self.kind in ("scalar", "array")

    @property
    def default_value(self) -> Any:
        assert self.default is not None
        elements = np.frombuffer(self.default, self.dtype)
        return elements[0].item() if self.kind == "scalar" else elements


@dataclass(frozen=True)
class Answer:
    """What a function was found to return."""

    kind: str  # number, tuple, array, out, nothing
    dtypes: tuple[Any, ...] = ()
    count: int = 0  # of out

    def decoder(self, name: str) -> Decode:
        """From the reply to the value."""
        dtypes = self.dtypes
        if self.kind == "out":
            return _checked(name, dtypes[0].itemsize * self.count, lambda reply: reply.array(dtypes[0]))
        if self.kind == "tuple":
            unpack = struct.Struct("<" + "".join(_code(dtype) for dtype in dtypes)).unpack
            return _checked(name, 8 * len(dtypes), unpack)
        if self.kind == "array":
            return _array_decoder(name, dtypes[0])
        if self.kind == "nothing":
            return lambda reply: None
        single = dtypes[0]
        if _fits_a_slot(single):
            unpack_one = struct.Struct("<" + single.char.replace("l", "q").replace("L", "Q")).unpack
            return _checked(name, single.itemsize, lambda reply: unpack_one(reply)[0])
        return _checked(name, single.itemsize, lambda reply: reply.array(single)[0])

    def of(self, value: Any) -> Any:
        """What a caller gets when the function has returned `value` at a node."""
        if self.kind == "nothing":
            return None
        if self.kind == "tuple":
            return tuple(dtype.type(member).item() for dtype, member in zip(self.dtypes, value))
        if self.kind == "number":
            number = np.asarray(value).astype(self.dtypes[0])[()]
            return number.item() if _fits_a_slot(self.dtypes[0]) else number
        return np.array(value, self.dtypes[0])


@dataclass(frozen=True)
class Signature:
    name: str
    parameters: tuple[Parameter, ...]
    result: Any = None  # a dtype, a tuple of them, tc.array, "none", or None: to be inferred

    @staticmethod
    def of(function: Callable[..., Any], name: str | None, scope: Mapping[str, Any] | None = None) -> Signature:
        """Reads the annotations. Raises IfuncError for those that mean nothing here."""
        if not inspect.isfunction(function) or inspect.iscoroutinefunction(function) \
                or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise IfuncError(f"{function!r} is no plain Python function", "", "decorate one that is made with def, "
                             "without async and yield", Status.INVALID)
        label = name or function.__name__
        try:
            hints = inspect.get_annotations(function, locals=dict(scope or {}), eval_str=True)
        except Exception as error:
            raise IfuncError(f"{label}: its annotations cannot be read: {error}", "", "name types that exist where the "
                             "function is defined", Status.INVALID) from None
        parameters = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                raise IfuncError(f"{label}: parameter '{parameter.name}' is variadic or keyword-only", parameter.name,
                                 "give the ifunc plain parameters", Status.INVALID)
            if parameter.name not in hints:
                raise IfuncError(f"{label}: parameter '{parameter.name}' has no annotation", parameter.name,
                                 "annotate it: np.float64, tc.array(np.float64), tc.data('name', np.float64)",
                                 Status.INVALID)
            made = _parameter(label, parameter.name, hints[parameter.name])
            if parameter.default is not parameter.empty:
                made = replace(made, default=_default(label, made, parameter.default))
            parameters.append(replace(made, only_positional=parameter.kind is parameter.POSITIONAL_ONLY))
        if sum(parameter.kind == "out" for parameter in parameters) > 1:
            raise IfuncError(f"{label}: has two tc.out parameters when an ifunc has one answer", "tc.out",
                             "use one array for both", Status.INVALID)
        return Signature(label, tuple(parameters), _result(label, hints))

    @property
    def travelling(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.travels)

    @property
    def out(self) -> Parameter | None:
        return next((parameter for parameter in self.parameters if parameter.kind == "out"), None)

    @property
    def header_bytes(self) -> int:
        travelling = self.travelling
        return 0 if len(travelling) == 1 and travelling[0].kind == "array" else 8 * len(travelling)

    def result_type(self, from_dtype: Callable[[Any], Any], types: Any) -> Any:
        """The annotated type of result, as Numba knows it."""
        if self.result == "none":
            return types.none
        if isinstance(self.result, _types.Array):
            return types.Array(from_dtype(self.result.dtype), 1, "C", readonly=True)  # and so any array
        if isinstance(self.result, tuple):
            return types.Tuple([from_dtype(dtype) for dtype in self.result])
        return from_dtype(self.result)

    def bind(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the parameters that travel, as Python binds them: by place, by name, defaults."""
        travelling = self.travelling
        label = f"{self.name}({', '.join(parameter.name for parameter in travelling)})"
        if len(args) > len(travelling):
            raise ArgumentTypeError(f"{label} takes {len(travelling)} arguments but {len(args)} were given")
        left = dict(named)
        values = list(args)
        for parameter in travelling[: len(args)]:
            if parameter.name in left and not parameter.only_positional:
                raise ArgumentTypeError(f"{label} got two values for '{parameter.name}'", parameter.name)
        for parameter in travelling[len(args) :]:
            if parameter.name in left and not parameter.only_positional:
                values.append(left.pop(parameter.name))
            elif parameter.default is not None:
                values.append(parameter.default_value)
            else:
                raise ArgumentTypeError(f"{label} takes {len(travelling)} arguments but {len(args) + len(named)} were given: "
                                        f"'{parameter.name}', {_told(parameter)}, is missing", parameter.name)
        if left:
            raise self._unknown(label, next(iter(left)))
        return tuple(values)

    def _unknown(self, label: str, name: str) -> ArgumentTypeError:
        parameter = next((parameter for parameter in self.parameters if parameter.name == name), None)
        if parameter is None:
            return ArgumentTypeError(f"{label} has no parameter '{name}'", name)
        if parameter.only_positional:
            return ArgumentTypeError(f"{label} takes '{name}' by place only", name)
        return ArgumentTypeError(f"{label} is not sent '{name}', {_told(parameter)}: " +
                                 ("the node has it" if parameter.kind in ("data", "column") else "it is the answer"), name)

    def encoder(self) -> Encode:
        """From arguments to pieces of the payload, without copying arrays."""
        travelling, name = self.travelling, self.name
        scalars_only = all(parameter.kind == "scalar" for parameter in travelling)
        pack = struct.Struct("<" + "".join(_slot(parameter) for parameter in travelling)).pack
        # struct takes anything for a bool, and the real part of NumPy's complex numbers for a float.
        quick = frozenset() if any(parameter.dtype.kind == "b" for parameter in travelling) else _QUICK

        def encode_scalars(args: tuple[Any, ...]) -> list[Any]:
            if quick.issuperset(map(type, args)):
                try:
                    return [pack(*args)]
                except (struct.error, OverflowError):
                    pass  # said below, by parameter
            if len(args) != len(travelling):
                args = self.bind(args, {})
            return [pack(*(number_of(name, parameter, value) for parameter, value in zip(travelling, args)))]

        def encode(args: tuple[Any, ...]) -> list[Any]:
            if len(args) != len(travelling):
                args = self.bind(args, {})
            slots, arrays = [], []
            for parameter, value in zip(travelling, args):
                if parameter.kind == "scalar":
                    slots.append(number_of(name, parameter, value))
                else:
                    array = array_of(name, parameter, value)
                    slots.append(array.size)
                    arrays.append(array)
            return [pack(*slots), *arrays] if self.header_bytes else arrays

        return encode_scalars if scalars_only else encode

    def for_inspection(self, answer: Answer) -> inspect.Signature:
        """What `inspect.signature` says of an ifunc whose Python function is not here."""
        made = []
        for parameter in self.parameters:
            kind = inspect.Parameter.POSITIONAL_ONLY if parameter.only_positional else inspect.Parameter.POSITIONAL_OR_KEYWORD
            default = inspect.Parameter.empty if parameter.default is None else \
                parameter.default_value if parameter.travels else None
            made.append(inspect.Parameter(parameter.name, kind, default=default, annotation=_annotation(parameter)))
        returned: Any = None
        if answer.kind in ("array", "out"):
            returned = _types.Array(answer.dtypes[0])
        elif answer.kind == "number":
            returned = answer.dtypes[0].type
        elif answer.kind == "tuple":
            returned = tuple(dtype.type for dtype in answer.dtypes)
        return inspect.Signature(made, return_annotation=returned)


def _annotation(parameter: Parameter) -> Any:
    dtype = parameter.dtype.type if parameter.dtype.names is None else parameter.dtype
    if parameter.kind == "data":
        return _types.Data(parameter.data_name, dtype, parameter.optional, parameter.readonly)
    if parameter.kind == "column":
        return _types.Column(parameter.data_name, str if parameter.dtype.kind == "S" else dtype, parameter.nulls)
    if parameter.kind == "out":
        return _types.Out(dtype, parameter.count)
    return dtype if parameter.kind == "scalar" else _types.Array(dtype)


def _told(parameter: Parameter) -> str:
    """A parameter's type, in sentences."""
    if parameter.kind == "scalar":
        return f"of type {parameter.dtype}"
    if parameter.kind == "data":
        return f"tc.data('{parameter.data_name}')"
    if parameter.kind == "column":
        return f"tc.column('{parameter.data_name}')"
    return f"an array of {parameter.dtype}" if parameter.kind == "array" else "tc.out"


def _checked(name: str, size: int, decode: Decode) -> Decode:
    def checked(reply: _native.Reply) -> Any:
        if len(reply) != size:
            raise Error(Status.MALFORMED, f"the answer of '{name}' is {len(reply)} bytes when {size} were expected")
        return decode(reply)

    return checked


def _array_decoder(name: str, dtype: Any) -> Decode:
    def decode(reply: _native.Reply) -> Any:
        if len(reply) % dtype.itemsize:
            raise Error(Status.MALFORMED, f"the answer of '{name}' is {len(reply)} bytes, which are no array of {dtype} "
                        f"({dtype.itemsize} bytes each)")
        return reply.array(dtype)

    return decode


# ---- Annotations --------------------------------------------------------------------------------------------

# Families of NumPy's types, each with the member that is meant most often.
_FAMILIES: dict[Any, str] = {np.generic: "np.float64", np.number: "np.float64", np.inexact: "np.float64", np.floating: "np.float64",
                             np.integer: "np.int64", np.signedinteger: "np.int64", np.unsignedinteger: "np.uint64",
                             np.complexfloating: "np.complex128"}
_SEQUENCES = (np.ndarray, list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable)


def _element_of(given: Any) -> str:
    """The type of the elements of npt.NDArray[np.float32] or list[int], as it is written."""
    for item in typing.get_args(given):
        for member in (item, *typing.get_args(item)):
            if member in _PYTHON_TYPES:
                return f"np.{np.dtype(_PYTHON_TYPES[member]).name}"
            if isinstance(member, type) and issubclass(member, np.generic) and member not in _FAMILIES:
                return f"np.{np.dtype(member).name}"
    return "np.float64"


def _instead(given: Any) -> tuple[str, str] | None:
    """What is wrong with an annotation that is too vague, and what to write in its place."""
    origin = typing.get_origin(given) or given
    if any(origin is kind for kind in _SEQUENCES):
        element = _element_of(given)
        return "does not say where the array comes from, or of what type it is", \
            f"write tc.array({element}) for an array that is passed, tc.data('NAME', {element}) for one that the node has, or " \
            f"tc.out({element}, COUNT) for the answer"
    if isinstance(origin, type) and origin in _FAMILIES:
        return "is a family of types", f"write one of them, such as {_FAMILIES[origin]}"
    if given is Any or given is object:
        return "can be anything", "say what travels, such as np.float64, np.int64 or tc.array(np.float64)"
    if any(origin is kind for kind in (str, bytes, bytearray, memoryview)):
        return "is not of a fixed size", "write tc.array(np.uint8), and pass np.frombuffer(TEXT.encode(), np.uint8)"
    if origin is typing.Union or origin is types.UnionType:
        kinds = [getattr(kind, "__name__", str(kind)) for kind in typing.get_args(given) if kind is not type(None)]
        return "is one of several types, and a number is always of one", f"write {kinds[0] if kinds else 'np.float64'}"
    return None


def _vague(label: str, name: str, given: Any) -> None:
    """Raises IfuncError for an annotation that many types fit."""
    found = _instead(given)
    if found is not None:
        shown = given.__name__ if isinstance(given, type) and typing.get_origin(given) is None else str(given)
        raise IfuncError(f"{label}: '{name}' is annotated {shown}, which {found[0]}; {found[1]}", name, found[1], Status.INVALID)


def _default(label: str, parameter: Parameter, value: Any) -> bytes:
    """The bytes of a default value. Those of data and answers, which do not travel, can be None only."""
    if not parameter.travels:
        if value is None:
            return b""
        raise IfuncError(f"{label}: '{parameter.name}', {_told(parameter)}, has a default value, and does not travel",
                         parameter.name, "its default can be None, where Python wants one", Status.INVALID)
    try:
        made = number_of(label, parameter, value) if parameter.kind == "scalar" else array_of(label, parameter, value)
    except ArgumentError as error:
        raise IfuncError(f"the default value of {error.message}", parameter.name, "give a default value of the parameter's type",
                         Status.INVALID) from None
    return np.asarray(made, parameter.dtype).tobytes()


def dtype_of(label: str, name: str, given: Any) -> Any:
    """The NumPy type that is meant. Raises IfuncError for what has no fixed bytes."""
    _vague(label, name, given)
    try:
        dtype = np.dtype(_PYTHON_TYPES.get(given, given))
    except (TypeError, ValueError):
        dtype = np.dtype(object)
    if dtype.kind not in "iufcbV" or (dtype.kind == "V" and dtype.names is None) or dtype.itemsize == 0:
        raise IfuncError(f"{label}: '{name}' is annotated {given!r}, which has no fixed bytes", name,
                         "use NumPy's number types, such as np.float64", Status.INVALID)
    return dtype


def _plain(given: Any) -> Any:
    """Without `Annotated`, with which type checkers are told another type than we."""
    if typing.get_origin(given) is Annotated:
        return next((item for item in given.__metadata__ if isinstance(item, _OURS)), given.__origin__)
    return given


def _parameter(label: str, name: str, hint: Any) -> Parameter:
    given = _plain(hint)
    if isinstance(given, _types.Data):
        if not given.name or "\0" in given.name:
            raise IfuncError(f"{label}: '{name}' asks for data named {given.name!r}, which no target can have", name,
                             "name what the target exposes", Status.INVALID)
        return Parameter(name, "data", dtype_of(label, name, given.dtype), given.name, optional=given.optional,
                         readonly=given.readonly)
    if isinstance(given, _types.Column):
        return _column(label, name, given)
    if isinstance(given, _types.Array):
        return Parameter(name, "array", dtype_of(label, name, given.dtype))
    if isinstance(given, _types.Out):
        size = int(given.count) * dtype_of(label, name, given.dtype).itemsize
        if not 0 < size <= _OUT_BYTES:
            raise IfuncError(f"{label}: '{name}' is an answer of {size} bytes when it may have 1 to {_OUT_BYTES}", name,
                             "give tc.out another count", Status.INVALID)
        return Parameter(name, "out", dtype_of(label, name, given.dtype), count=int(given.count))
    dtype = dtype_of(label, name, given)
    if dtype.kind not in "iufb" or dtype.itemsize > 8:
        raise IfuncError(f"{label}: '{name}' is annotated {given!r}, which is no number of up to 8 bytes", name,
                         f"pass it in an array of one element: tc.array(np.{dtype.name})", Status.INVALID)
    return Parameter(name, "scalar", dtype)


def _column(label: str, name: str, given: _types.Column) -> Parameter:
    table, _, column = given.name.partition(".")
    if not table or not column or "\0" in given.name:
        raise IfuncError(f"{label}: '{name}' asks for the column {given.name!r}, which no target can have", name,
                         'name the table and its column: tc.column("trips.fare", np.float64)', Status.INVALID)
    if given.dtype is str or given.dtype is bytes:
        return Parameter(name, "column", np.dtype("S"), given.name, nulls=given.nulls)
    dtype = dtype_of(label, name, given.dtype)
    if dtype.kind not in "iufb" or dtype.itemsize > 8 or dtype == np.float16:
        raise IfuncError(f"{label}: '{name}' is annotated as a column of {dtype}, which Arrow or Numba does not have", name,
                         "use whole numbers, np.float32, np.float64, bool, or str; dates and times are whole numbers",
                         Status.INVALID)
    return Parameter(name, "column", dtype, given.name, nulls=given.nulls)


def _result(label: str, hints: dict[str, Any]) -> Any:
    if "return" not in hints:
        return None
    given = _plain(hints["return"])
    if isinstance(given, _types.Array):
        return _types.Array(dtype_of(label, "return", given.dtype))
    if given is None or given is type(None):
        return "none"
    if typing.get_origin(given) is tuple and Ellipsis not in typing.get_args(given):
        given = typing.get_args(given)
    if isinstance(given, tuple):
        return tuple(dtype_of(label, "return", member) for member in given)
    return dtype_of(label, "return", given)


def _slot(parameter: Parameter) -> str:
    return _code(parameter.dtype) if parameter.kind == "scalar" else "q"


def _code(dtype: Any) -> str:
    """struct's letter for a number, filled up to 8 bytes."""
    letters = {"i": {1: "b", 2: "h", 4: "i", 8: "q"}, "u": {1: "B", 2: "H", 4: "I", 8: "Q"},
               "f": {2: "e", 4: "f", 8: "d"}, "b": {1: "?"}}
    padding = 8 - dtype.itemsize
    return letters[dtype.kind][dtype.itemsize] + (f"{padding}x" if padding else "")


# ---- Arguments ----------------------------------------------------------------------------------------------
#
# None is converted so that a value is lost: what does not fit is refused. Of arrays, types decide as NumPy's "same_kind"
# does, so that float64 goes to float32. Whole numbers are looked at one by one.


def _fits_a_slot(dtype: Any) -> bool:
    return dtype.kind in "iufb" and dtype.itemsize <= 8


def _shown(value: Any) -> str:
    return f"{str(value)[:80]} of {type(value).__name__}"


def number_of(ifunc: str, parameter: Parameter, value: Any) -> Any:
    """An argument as a number of Python's, which the parameter's type holds."""
    name, dtype = parameter.name, parameter.dtype
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    told = f"{ifunc}: '{name}' is of type {dtype}, which does not hold {_shown(value)}"
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if dtype.kind == "f":
        if isinstance(value, (str, bytes, bytearray, complex, np.complexfloating, np.ndarray)) or not hasattr(value, "__float__") \
                and not hasattr(value, "__index__"):
            raise ArgumentTypeError(told + (_REAL if isinstance(value, (complex, np.complexfloating)) else ""), name)
        try:
            number = float(value)
            struct.pack("<" + _code(dtype), number)
        except OverflowError:
            raise ArgumentOverflowError(told, name) from None
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"{told}: {error}", name) from None
        return number
    try:
        whole = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(told + (_WHOLE if isinstance(value, (float, np.floating)) else ""), name) from None
    low, high = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if not low <= whole <= high:
        raise ArgumentOverflowError(f"{told}: it holds {low} to {high}", name)
    return whole


_REAL = "; its imaginary part would be lost: pass its .real, or both parts, or a tc.array(np.complex128)"
_WHOLE = "; convert it by int() or round() where that is meant"


def array_of(ifunc: str, parameter: Parameter, value: Any) -> Any:
    """The argument as an array in one piece: `value` itself where it is one."""
    name, dtype = parameter.name, parameter.dtype
    if type(value) is not np.ndarray or value.dtype != dtype:
        value = _converted(f"{ifunc}: '{name}'", name, dtype, value)
    if value.ndim != 1:
        raise ArgumentTypeError(f"{ifunc}: '{name}' has {value.ndim} dimensions when it must have 1, as an array of {dtype}", name)
    return np.ascontiguousarray(value)


def _converted(label: str, name: str, dtype: Any, value: Any) -> Any:
    if value is None:
        raise ArgumentTypeError(f"{label} is an array of {dtype}, and None was given; an empty array is []", name)
    if isinstance(value, _native.Message):
        raise ArgumentTypeError(f"{label} is an array of {dtype}, and a Message for ifunc '{value.ifunc}' was given", name)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ArgumentValueError(f"{label} is an array of {dtype}, and elements of what was given are masked; pass "
                                 ".filled(VALUE), or the mask as an array of its own", name)
    if dtype.kind == "V":
        return _structured(label, name, dtype, value)
    try:
        given = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentValueError(f"{label} is an array of {dtype}, and {_shown(value)} is none: {error}", name) from None
    if given.dtype.kind == "O" and given is not value and given.ndim and all(type(item) is int for item in given.flat):
        _check_range(label, name, dtype, given)  # whole numbers that no type of NumPy's holds
    if given.dtype.kind not in "biufc":
        raise _refused(ArgumentTypeError, label, name, dtype, given, 0)
    if given.dtype.kind in "iu" and dtype.kind in "iub":
        _check_range(label, name, dtype, given)
    elif given.size and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise _refused(ArgumentTypeError, label, name, dtype, given, 0)
    with np.errstate(over="ignore"):
        made = given.astype(dtype, copy=False)
    if dtype.kind in "fc" and not np.can_cast(given.dtype, dtype, "safe"):
        lost = np.isfinite(given) & ~np.isfinite(made)
        if lost.any():
            raise _refused(ArgumentOverflowError, label, name, dtype, given, int(np.argmax(lost)))
    return made


def _check_range(label: str, name: str, dtype: Any, given: Any) -> None:
    low, high = (0, 1) if dtype.kind == "b" else (-np.inf, np.inf)
    if dtype.kind in "iu":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if given.size and (int(given.min()) < low or int(given.max()) > high):
        place = next(i for i, item in enumerate(given.flat) if not low <= int(item) <= high)
        raise _refused(ArgumentOverflowError, label, name, dtype, given, place)


def _structured(label: str, name: str, dtype: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if not np.can_cast(value.dtype, dtype, "safe"):
            raise _refused(ArgumentTypeError, label, name, dtype, value, 0)
        return value.astype(dtype, copy=False)
    try:
        rows = [tuple(row) for row in value]
    except TypeError as error:
        raise ArgumentTypeError(f"{label} is an array of {dtype}, and {_shown(value)} has no rows: {error}", name) from None
    if any(len(row) != len(dtype.names) for row in rows):
        raise ArgumentTypeError(f"{label} is an array of {dtype}, and a row has not {len(dtype.names)} fields", name)
    made = np.empty(len(rows), dtype)
    for i, field_name in enumerate(dtype.names):
        field = dtype[field_name]
        column = [row[i] for row in rows]
        made[field_name] = _converted(f"{label}, field '{field_name}'", name, field.base, column) \
            .reshape(len(rows), *field.shape) if rows else []
    return made


def _refused(kind: type[ArgumentError], label: str, name: str, dtype: Any, given: Any, place: int) -> ArgumentError:
    value = given.flat[place] if given.size else given
    advice = _REAL if given.dtype.kind == "c" and dtype.kind == "f" else "; convert it by astype() where that is meant"
    return kind(f"{label} is an array of {dtype}, which does not hold {str(value)[:80]} of {given.dtype} (element {place}){advice}",
                name)


# ---- As text ------------------------------------------------------------------------------------------------
#
# What travels in a saved ifunc. It may come from anywhere: what is no signature is a threechains.Error.

_VERSION = 1


def to_text(signature: Signature, answer: Answer, doc: str | None) -> bytes:
    parameters = [{"name": parameter.name, "kind": parameter.kind, "dtype": np.lib.format.dtype_to_descr(parameter.dtype),
                   "data": parameter.data_name, "count": parameter.count, "optional": parameter.optional,
                   "default": None if parameter.default is None else parameter.default.hex(),
                   "only_positional": parameter.only_positional, "nulls": parameter.nulls,
                   "readonly": parameter.readonly} for parameter in signature.parameters]
    returned = {"kind": answer.kind, "dtypes": [np.lib.format.dtype_to_descr(dtype) for dtype in answer.dtypes],
                "count": answer.count}
    return json.dumps({"version": _VERSION, "name": signature.name, "doc": doc, "parameters": parameters,
                       "answer": returned}).encode()


def from_text(text: bytes) -> tuple[Signature, Answer, str | None]:
    try:
        given = json.loads(text)
        if given["version"] != _VERSION:
            raise Error(Status.VERSION, f"the signature in the .ifunc file has version {given['version']!r} when this package "
                        f"reads version {_VERSION}")
        name = str(given["name"])
        signature = Signature(name, tuple(_parameter_of(name, item) for item in given["parameters"]))
        returned = given["answer"]
        dtypes = tuple(_dtype_in(name, "return", item) for item in returned["dtypes"])
        answer = Answer(str(returned["kind"]), dtypes, int(returned["count"]))
        if not _is_answer(answer):
            raise ValueError(f"an answer {returned}")
        signature.for_inspection(answer)  # raises what Python says of names and their order
        return signature, answer, None if given["doc"] is None else str(given["doc"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError, SyntaxError, IfuncError) as error:
        raise Error(Status.MALFORMED, f"the signature in the .ifunc file is malformed: {error!r}; the code itself is "
                    "threechains.Ifunc(BYTES)") from None


def _is_answer(answer: Answer) -> bool:
    counts = {"number": 1, "array": 1, "out": 1, "nothing": 0, "tuple": len(answer.dtypes)}
    fits = answer.kind != "tuple" or all(_fits_a_slot(dtype) for dtype in answer.dtypes)
    return counts.get(answer.kind) == len(answer.dtypes) and answer.count >= 0 and fits


def _as_descr(given: Any) -> Any:
    """JSON has no tuples, of which NumPy's descriptions are made."""
    if isinstance(given, str):
        return given
    if given and all(isinstance(field, list) for field in given):
        return [(tuple(field[0]) if isinstance(field[0], list) else field[0], _as_descr(field[1]), *map(tuple, field[2:]))
                for field in given]
    return _as_descr(given[0]), tuple(given[1])


def _dtype_in(label: str, name: str, given: Any) -> Any:
    return dtype_of(label, name, np.lib.format.descr_to_dtype(_as_descr(given)))


def _parameter_of(label: str, given: Any) -> Parameter:
    name, kind = str(given["name"]), str(given["kind"])
    kinds = ("scalar", "array", "data", "out", "column")
    # Texts have no fixed size.
    dtype = np.dtype("S") if kind == "column" and given["dtype"] == "|S0" else _dtype_in(label, name, given["dtype"])
    default = None if given["default"] is None else bytes.fromhex(given["default"])
    if not name.isidentifier() or kind not in kinds or kind == "scalar" and not _fits_a_slot(dtype):
        raise ValueError(f"a parameter {name!r} of kind {kind!r} and type {dtype}")
    if default is not None and kind in ("scalar", "array") and \
            (len(default) % dtype.itemsize or kind == "scalar" and len(default) != dtype.itemsize):
        raise ValueError(f"a default value of {len(default)} bytes for '{name}', of type {dtype}")
    return Parameter(name, kind, dtype, str(given["data"]), int(given["count"]), bool(given["optional"]), default,
                     bool(given["only_positional"]), bool(given["nulls"]), bool(given.get("readonly", False)))
