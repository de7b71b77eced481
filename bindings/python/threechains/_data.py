# SPDX-License-Identifier: Apache-2.0
"""Named data: what is known here of its type, shape and order.

Nodes have bytes, and no types. Who gives them an array here knows these: a LocalCluster, and a Node of this process, also for those
that connect to it from this process. What other nodes have is not known, and not checked.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from threechains._errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:  # it imports NumPy
    from threechains._signature import Parameter


@dataclass(frozen=True)
class Kind:
    dtype: Any
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}"


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
        raise ArgumentTypeError(f"{label} is an array of {parameter.dtype}, and {subject} {kind}: annotate it with "
                                f"{kind.dtype}, or convert the data by astype()", parameter.name)
    if len(kind.shape) != 1:
        raise ArgumentTypeError(f"{label} is an array of 1 dimension, and {subject} {kind}: give the data as .reshape(-1), "
                                "row after row", parameter.name)


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
