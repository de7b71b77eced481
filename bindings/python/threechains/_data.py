# SPDX-License-Identifier: Apache-2.0
"""Named data: what is known here of its type, shape and order.

Nodes have bytes, and no types. A process that gives them an array gives them a description too, as more named data: "prices.type"
beside "prices". The code of an ifunc compares the description with the parameter, at the node (_data_types.py). Where the array was
given by this process, to a LocalCluster or a Node of its own, the comparison is made here, before anything is sent. Files, plain bytes
and what programs in C expose have no description, and are not checked.

A description is four lines of text, and a zero byte after the last:

    <f4             the type as NumPy writes it, or a digest where that is long
    1               the number of dimensions
    float32         the type, for messages
    (1000,)         the shape, for messages
"""

from __future__ import annotations

import hashlib
import json
import sys
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from threechains._errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:  # it imports NumPy
    from threechains._signature import Parameter


SUFFIX = ".type"
DESCRIPTION_BYTES = 120  # at most
_TYPE_LENGTH, _WORDS_LENGTH = 32, 40


@dataclass(frozen=True)
class Kind:
    dtype: Any
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}"

    def description(self) -> bytes:
        lines = [type_line(self.dtype), str(len(self.shape)), _short(str(self.dtype)), _short(str(self.shape))]
        return "\n".join(lines).encode("ascii", "replace") + b"\0"


def type_line(dtype: Any) -> str:
    """The first line of a description. It is the same for types that are equal."""
    if dtype.names is None:
        return str(dtype.str)
    try:
        text = json.dumps(dtype.descr)
    except ValueError:  # fields that overlap; no ifunc can ask for them
        text = str(dtype)
    return text if len(text) <= _TYPE_LENGTH else hashlib.sha256(text.encode()).hexdigest()[:_TYPE_LENGTH]


def _short(words: str) -> str:
    return words if len(words) <= _WORDS_LENGTH else words[: _WORDS_LENGTH - 3] + "..."


class Known:
    """What is known of a node's data, by name. `kinds` is replaced when it changes, and never changed itself."""

    def __init__(self, kinds: Mapping[str, Kind] | None = None) -> None:
        self.kinds: Mapping[str, Kind] = kinds or {}

    def note(self, name: str, kind: Kind | None) -> None:
        others = {known: was for known, was in self.kinds.items() if known != name}
        self.kinds = others if kind is None else {**others, name: kind}


NOTHING = Known()
HERE: weakref.WeakValueDictionary[str, Known] = weakref.WeakValueDictionary()  # of the nodes of this process, by address


def kind_of(value: Any) -> Kind | None:
    """None: it is a file, or bytes, which ifuncs may take for what they like."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None  # nobody can ask for an array then
    if isinstance(value, numpy.ndarray):
        return Kind(value.dtype, value.shape)
    try:
        view = memoryview(value)
        typed = view.format not in ("B", "b", "c")
        return Kind(numpy.asarray(view).dtype, view.shape or ()) if typed and view.c_contiguous else None
    except (TypeError, ValueError):
        return None


def check_name(name: str) -> None:
    """Raises for the name of a description, which would take its place."""
    if str(name).endswith(SUFFIX):
        raise ArgumentValueError(f"data cannot be named '{name}': this name is for the type of data '{name.removesuffix(SUFFIX)}'; "
                                 f"give it another one, as '{name.replace('.', '_')}'", name)


def view_of(name: str, value: Any) -> memoryview:
    """The bytes to be exposed by this name."""
    try:
        view = memoryview(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"data '{name}' is {str(value)[:40]} of {type(value).__name__}, which has no bytes to share: give "
                                f"an array, as numpy.array(...) makes it ({error})", name) from None
    if not view.c_contiguous:
        raise ArgumentValueError(f"data '{name}', {kind_of(value) or 'a buffer'}, is not C-contiguous; give "
                                 "numpy.ascontiguousarray(...) of it", name)
    return view


def items_of(data: Any) -> Iterable[tuple[str, Any]]:
    """What `data=` of a node or a cluster is."""
    if data is None:
        return ()
    if not isinstance(data, Mapping):
        raise ArgumentTypeError(f"data is a {type(data).__name__} when it must be a dict, which has a name for each array: "
                                'data={"prices": prices}', "data")
    return data.items()


def check(ifunc: str, parameters: Iterable[Parameter], kinds: Mapping[str, Kind]) -> None:
    """Raises when data that is known is not what the parameters say."""
    for parameter in parameters:
        kind = kinds.get(parameter.data_name)
        if kind is not None:
            _check_one(f"{ifunc}: '{parameter.name}'", parameter, kind, f"data '{parameter.data_name}' is")


def _check_one(label: str, parameter: Parameter, kind: Kind, subject: str) -> None:
    if kind.dtype != parameter.dtype:
        raise ArgumentTypeError(of_another_type(label, parameter, subject, kind.dtype, kind.shape), parameter.name)
    if len(kind.shape) != 1:
        raise ArgumentTypeError(of_another_shape(label, subject, kind.dtype, kind.shape), parameter.name)


def of_another_type(label: str, parameter: Parameter, subject: str, dtype: Any, shape: Any) -> str:
    return f"{label} is an array of {parameter.dtype}, and {subject} {dtype} of shape {shape}: annotate it with {dtype}, or convert " \
        "the data by astype()"


def of_another_shape(label: str, subject: str, dtype: Any, shape: Any) -> str:
    return f"{label} is an array of 1 dimension, and {subject} {dtype} of shape {shape}: give the data as .reshape(-1), row after row"


def as_node_has_it(label: str, parameter: Parameter, value: Any) -> Any:
    """An array that stands for a node's own: the function sees its memory, and may write to it."""
    import numpy

    from threechains import _signature

    array = value if isinstance(value, numpy.ndarray) else _signature.array_of(label.partition(":")[0], parameter, value)
    _check_one(label, parameter, Kind(array.dtype, array.shape), "what was passed is")
    if not array.flags.c_contiguous:
        raise ArgumentValueError(f"{label} is an array of {parameter.dtype} in one piece, and what was passed has strides "
                                 f"{array.strides}; pass numpy.ascontiguousarray(...) of it", parameter.name)
    if parameter.kind == "out" and array.size != parameter.count:
        raise ArgumentValueError(f"{label} is an answer of {parameter.count} elements, and an array of {array.size} was passed",
                                 parameter.name)
    return array
