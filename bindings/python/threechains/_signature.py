# SPDX-License-Identifier: Apache-2.0
"""What travels between the caller of a Python ifunc and its code at the target.

The payload: one slot of 8 bytes for each parameter that travels, holding a number, or an array's number of elements;
then the arrays, each at a multiple of 16. A function with one array and nothing else gets the array's bytes alone.
The answer: a number as it lies in memory; a tuple's numbers in slots of 8 bytes; or the bytes of an array.
"""

from __future__ import annotations

import inspect
import struct
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from threechains import _native, _types
from threechains._errors import Error, IfuncError, Status

Encode = Callable[[tuple[Any, ...]], list[Any]]
Decode = Callable[[_native.Reply], Any]
# The ifunc's own memory at every target holds it for as long as the code is kept.
_OUT_BYTES = 64 << 20
_OURS = (_types.Data, _types.Column, _types.Array, _types.Out)
_PYTHON_TYPES = {int: np.int64, float: np.float64, bool: np.bool_}


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str  # scalar, array, data, column, out
    dtype: Any
    data_name: str = ""
    count: int = 0
    optional: bool = False
    nulls: bool = False

    @property
    def travels(self) -> bool:
        return self.kind in ("scalar", "array")


@dataclass(frozen=True)
class Signature:
    name: str
    parameters: tuple[Parameter, ...]
    result: Any  # a dtype, a tuple of them, tc.array, "none", or None: to be inferred

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
            if parameter.default is not parameter.empty:
                raise IfuncError(f"{label}: parameter '{parameter.name}' has a default value, which does not travel",
                                 parameter.name, "give the value to submit()", Status.INVALID)
            parameters.append(_parameter(label, parameter.name, hints[parameter.name]))
        if sum(parameter.kind == "out" for parameter in parameters) > 1:
            raise IfuncError(f"{label}: has two tc.out parameters when an ifunc has one answer", "tc.out",
                             "use one array for both", Status.INVALID)
        return Signature(label, tuple(parameters), _result(label, hints))

    @property
    def travelling(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.travels)

    @property
    def header_bytes(self) -> int:
        travelling = self.travelling
        return 0 if len(travelling) == 1 and travelling[0].kind == "array" else 8 * len(travelling)

    def result_type(self, from_dtype: Callable[[Any], Any], types: Any) -> Any:
        """The annotated type of result, as Numba knows it."""
        if self.result == "none":
            return types.none
        if isinstance(self.result, _types.Array):
            return types.Array(from_dtype(self.result.dtype), 1, "C")
        if isinstance(self.result, tuple):
            return types.Tuple([from_dtype(dtype) for dtype in self.result])
        return from_dtype(self.result)

    def encoder(self) -> Encode:
        """From arguments to pieces of the payload, without copying arrays."""
        travelling, name = self.travelling, self.name
        scalars_only = all(parameter.kind == "scalar" for parameter in travelling)
        pack = struct.Struct("<" + "".join(_slot(parameter) for parameter in travelling)).pack

        def check(args: tuple[Any, ...]) -> None:
            if len(args) != len(travelling):
                names = ", ".join(parameter.name for parameter in travelling)
                raise TypeError(f"{name}({names}) takes {len(travelling)} arguments but {len(args)} were given")

        def encode_scalars(args: tuple[Any, ...]) -> list[Any]:
            try:
                return [pack(*args)]
            except struct.error as error:
                check(args)
                raise TypeError(f"{name}: {error}") from None

        def encode(args: tuple[Any, ...]) -> list[Any]:
            check(args)
            slots, arrays = [], []
            for parameter, value in zip(travelling, args):
                if parameter.kind == "scalar":
                    slots.append(value)
                else:
                    array = _array_of(name, parameter.name, parameter.dtype, value)
                    if array.ndim != 1:
                        raise TypeError(f"{name}: '{parameter.name}' has {array.ndim} dimensions when it must have 1")
                    slots.append(array.size)
                    arrays.append(array)
            if not self.header_bytes:
                return arrays
            try:
                return [pack(*slots), *arrays]
            except struct.error as error:
                raise TypeError(f"{name}: {error}") from None

        return encode_scalars if scalars_only else encode

    def decoder(self, members: tuple[Any, ...] | None, single: Any, array: Any) -> Decode:
        """From the reply to the value: of a tuple's `members`, of one number `single`, of an `array`'s elements, of
        tc.out, or None."""
        out = next((parameter for parameter in self.parameters if parameter.kind == "out"), None)
        if out is not None:
            return _checked(self.name, out.dtype.itemsize * out.count, lambda reply: reply.array(out.dtype))
        if members is not None:
            unpack = struct.Struct("<" + "".join(_code(dtype) for dtype in members)).unpack
            return _checked(self.name, 8 * len(members), unpack)
        if array is not None:
            return _array_decoder(self.name, array)
        if single is None:
            return lambda reply: None
        if single.kind in "iufb" and single.itemsize <= 8:
            unpack_one = struct.Struct("<" + single.char.replace("l", "q").replace("L", "Q")).unpack
            return _checked(self.name, single.itemsize, lambda reply: unpack_one(reply)[0])
        return _checked(self.name, single.itemsize, lambda reply: reply.array(single)[0])


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


def dtype_of(label: str, name: str, given: Any) -> Any:
    """The NumPy type that is meant. Raises IfuncError for what has no fixed bytes."""
    try:
        dtype = np.dtype(_PYTHON_TYPES.get(given, given))
    except TypeError:
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
        return Parameter(name, "data", dtype_of(label, name, given.dtype), given.name, optional=given.optional)
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
                         "pass it in an array: tc.array(dtype)", Status.INVALID)
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
    if typing.get_origin(given) is tuple:
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


# ---- Arguments that are arrays ------------------------------------------------------------------------------
#
# None is converted so that a value is lost: what does not fit is refused, as for numbers. Types decide as NumPy's
# "same_kind" does, so that float64 goes to float32. Whole numbers are looked at one by one.


def _array_of(ifunc: str, name: str, dtype: Any, value: Any) -> Any:
    """The argument `name` of an ifunc as an array of `dtype` in one piece: `value` itself where it is one."""
    if type(value) is np.ndarray and value.dtype == dtype:
        return np.ascontiguousarray(value)
    return np.ascontiguousarray(_converted(f"{ifunc}: '{name}'", dtype, value))


def _converted(label: str, dtype: Any, value: Any) -> Any:
    if isinstance(value, _native.Message):
        raise TypeError(f"{label} is an array of {dtype}, and a Message for ifunc '{value.ifunc}' was given")
    if dtype.kind == "V":
        return _structured(label, dtype, value)
    given = np.asarray(value)
    if given.dtype.kind == "O" and given is not value and all(type(item) is int for item in given.flat):
        _check_range(label, dtype, given)  # whole numbers that no type of NumPy's holds
    if given.dtype.kind not in "biufc":
        raise _refused(TypeError, label, dtype, given, 0)
    if given.dtype.kind in "iu" and dtype.kind in "iub":
        _check_range(label, dtype, given)
    elif given.size and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise _refused(TypeError, label, dtype, given, 0)
    with np.errstate(over="ignore"):
        made = given.astype(dtype, copy=False)
    if dtype.kind in "fc" and not np.can_cast(given.dtype, dtype, "safe"):
        lost = np.isfinite(given) & ~np.isfinite(made)
        if lost.any():
            raise _refused(OverflowError, label, dtype, given, int(np.argmax(lost)))
    return made


def _check_range(label: str, dtype: Any, given: Any) -> None:
    low, high = (0, 1) if dtype.kind == "b" else (-np.inf, np.inf)
    if dtype.kind in "iu":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if given.size and (int(given.min()) < low or int(given.max()) > high):
        place = next(i for i, item in enumerate(given.flat) if not low <= int(item) <= high)
        raise _refused(OverflowError, label, dtype, given, place)


def _structured(label: str, dtype: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if not np.can_cast(value.dtype, dtype, "safe"):
            raise _refused(TypeError, label, dtype, value, 0)
        return value.astype(dtype, copy=False)
    rows = list(value)
    made = np.empty(len(rows), dtype)
    for i, name in enumerate(dtype.names):
        field = dtype[name]
        column = [row[i] for row in rows]
        made[name] = _converted(f"{label}, field '{name}'", field.base, column).reshape(len(rows), *field.shape) \
            if rows else []
    return made


def _refused(kind: type[Exception], label: str, dtype: Any, given: Any, place: int) -> Exception:
    value = given.flat[place] if given.size else given
    return kind(f"{label} is an array of {dtype}, which does not hold {str(value)[:80]} of {given.dtype} (element {place}); "
                "convert it by astype() where that is meant")
