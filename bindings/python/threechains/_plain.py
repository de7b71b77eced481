# SPDX-License-Identifier: Apache-2.0
"""An ifunc that is called plainly: its Python function runs here, in this process, as at a cluster of one node.

Arguments are converted and refused as submit() does it, and the function gets copies of arrays that would travel. The answer is
what a future would have.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from threechains import _data, _types
from threechains._errors import ArgumentTypeError
from threechains._signature import Answer, Parameter, Signature, array_of, number_of


def call(function: Callable[..., Any], signature: Signature, answer: Answer, args: tuple[Any, ...],
         named: Mapping[str, Any]) -> Any:
    given = _bound(function, signature, args, named)
    values = [_value(signature, parameter, given) for parameter in signature.parameters]
    here = _Here(function, signature, values, {parameter.data_name for parameter in signature.parameters
                                               if parameter.kind == "data" and parameter.name in given})
    return answer.of(here.run(values))


def _bound(function: Callable[..., Any], signature: Signature, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, as Python binds them. But a tc.out has no place, unless arguments for all parameters are given."""
    parameters = signature.parameters
    if len(args) < len(parameters):
        parameters = tuple(parameter for parameter in parameters if parameter.kind != "out")
    label = f"{signature.name}{inspect.signature(function)}"
    if len(args) > len(parameters):
        raise ArgumentTypeError(f"{label} takes {len(parameters)} arguments but {len(args)} were given")
    given = {parameter.name: value for parameter, value in zip(parameters, args)}
    names = {parameter.name for parameter in signature.parameters if not parameter.only_positional}
    for name, value in named.items():
        if name not in names or name in given:
            told = f"got two values for '{name}'" if name in given else f"has no parameter '{name}'"
            raise ArgumentTypeError(f"{label} {told}", name)
        given[name] = value
    return given


def _value(signature: Signature, parameter: Parameter, given: Mapping[str, Any]) -> Any:
    name, label = parameter.name, f"{signature.name}: '{parameter.name}'"
    if parameter.kind == "data":
        if given.get(name) is not None:
            return _with_fields(_as_declared(parameter, _data.as_node_has_it(label, parameter, given[name])))
        if parameter.optional:
            return np.empty(0, parameter.dtype)
        raise ArgumentTypeError(f"{label} is tc.data('{parameter.data_name}'), which a node has, and no node is here: pass an "
                                f"array of {parameter.dtype} in its place, {signature.name}(..., {name}=ARRAY)", name)
    if parameter.kind == "column":
        if given.get(name) is None:
            raise ArgumentTypeError(f"{label} is tc.column('{parameter.data_name}'), which a node has, and no node is here: pass its "
                                    f"values in its place, {signature.name}(..., {name}=LIST)", name)
        return _column_of(label, parameter, given[name])
    if parameter.kind == "out":
        if given.get(name) is None:
            return np.zeros(parameter.count, parameter.dtype)
        return _data.as_node_has_it(label, parameter, given[name])
    if name not in given and parameter.default is None:
        raise ArgumentTypeError(f"{label}, of type {parameter.dtype}, is missing", name)
    value = given.get(name, parameter.default_value if parameter.default is not None else None)
    return _travelled(signature, parameter, value)


class _Column:
    """What a column with nulls, of bools or of texts is in a function that runs here."""

    def __init__(self, given: list[Any], dtype: Any) -> None:
        self._given = given
        if dtype.kind != "S":
            self.values = np.array([dtype.type() if value is None else value for value in given], dtype)

    def __len__(self) -> int:
        return len(self._given)

    def __getitem__(self, row: int) -> Any:
        if not 0 <= row < len(self._given):
            raise IndexError("the column has no such row")
        value = self._given[row]
        return np.frombuffer(_bytes_of(value), np.uint8) if not hasattr(self, "values") else self.values[row]

    def is_valid(self, row: int) -> bool:
        self[row]
        return self._given[row] is not None

    def equals(self, row: int, text: str) -> bool:
        return bytes(self[row]) == text.encode()


def _bytes_of(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text or b"")


def _column_of(label: str, parameter: Parameter, given: Any) -> Any:
    if parameter.dtype.kind in "iuf" and not parameter.nulls:
        return _data.as_node_has_it(label, parameter, given)
    rows = list(given)
    if not parameter.nulls and None in rows:
        raise ArgumentTypeError(f"{label} has nulls: annotate it with nulls=True, and ask is_valid(i)", parameter.name)
    return _Column(rows, parameter.dtype)


def _travelled(signature: Signature, parameter: Parameter, value: Any) -> Any:
    """What the function gets of an argument that is sent."""
    if parameter.kind == "scalar":
        return parameter.dtype.type(number_of(signature.name, parameter, value))
    return _with_fields(np.array(array_of(signature.name, parameter, value)))


def _as_declared(parameter: Parameter, array: Any) -> Any:
    """Compiled code could not write to it either."""
    if parameter.readonly:
        array = array.view()
        array.flags.writeable = False
    return array


def _with_fields(array: Any) -> Any:
    """Its elements have their fields as attributes, as in compiled code."""
    return array.view(np.recarray) if array.dtype.names else array


class _Here:
    """Calls the function, and again when it forwards itself: what the last call answers is the answer."""

    def __init__(self, function: Callable[..., Any], signature: Signature, values: list[Any], data: set[str]) -> None:
        self._function, self._signature, self._values = function, signature, values
        self._data = data
        self._forwarded: tuple[Any, ...] | None = None

    def run(self, values: list[Any]) -> Any:
        token = _types.HERE.set(_types.Here(self._data, self._forward))
        try:
            while True:
                self._forwarded = None
                returned = self._function(*values)
                if self._forwarded is None:
                    return self._result(returned, values)
                values = self._next(self._forwarded)
        finally:
            _types.HERE.reset(token)

    def _forward(self, arguments: tuple[Any, ...]) -> int:
        values = self._signature.bind(arguments, {})
        travelled = zip(self._signature.travelling, values)
        self._forwarded = tuple(_travelled(self._signature, parameter, value) for parameter, value in travelled)
        return 0

    def _next(self, travelled: tuple[Any, ...]) -> list[Any]:
        rest = iter(travelled)
        made = []
        for parameter, value in zip(self._signature.parameters, self._values):
            made.append(next(rest) if parameter.travels else np.zeros_like(value) if parameter.kind == "out" else value)
        return made

    def _result(self, returned: Any, values: list[Any]) -> Any:
        out = self._signature.out
        return returned if out is None else values[self._signature.parameters.index(out)]
