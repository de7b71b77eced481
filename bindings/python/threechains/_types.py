# SPDX-License-Identifier: Apache-2.0
"""What the parameters of an ifunc written in Python can be. Needs neither Numba nor NumPy to be imported."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from threechains._errors import NotAtANodeError, Status


@dataclass(frozen=True)
class Data:
    """See `data`."""

    name: str
    dtype: Any
    optional: bool = False
    readonly: bool = False


@dataclass(frozen=True)
class Column:
    """See `column`."""

    name: str
    dtype: Any
    nulls: bool = False


@dataclass(frozen=True)
class Array:
    """See `array`."""

    dtype: Any


@dataclass(frozen=True)
class Out:
    """See `out`."""

    dtype: Any
    count: int


@dataclass(frozen=True)
class External:
    """See `external`."""

    symbol: str
    result: Any
    arguments: tuple[Any, ...]

    def __call__(self, *arguments: Any) -> Any:
        raise NotAtANodeError(f"{self.symbol}() is for ifuncs, at nodes: it is the target's, and not in this process")


def data(name: str, dtype: Any, *, optional: bool = False, readonly: bool = False) -> Any:
    """A parameter that is not sent: an array at the target, which exposes it under this name.

        def total(prices: tc.data("prices", np.float64)) -> np.float64: ...

    The call fails when the target exposes no such data; with `optional`, the array is empty then. The function sees the target's
    own memory. With `readonly`, a function that writes to the array does not compile.
    """
    return Data(name, dtype, optional, readonly)


def column(name: str, dtype: Any, *, nulls: bool = False) -> Any:
    """A parameter that is not sent: a column of an Arrow table that the target has, "TABLE.COLUMN". It is read-only.

        def total(fares: tc.column("trips.fare", np.float64)) -> np.float64: ...

    With a type of numbers it is an array. With `nulls`, and always with `bool` and `str`, it is a column: `len(c)`, `c[i]`,
    `c.is_valid(i)`; of numbers also `c.values`, and of texts (where `c[i]` are bytes) `c.equals(i, "text")`. Dates and times
    are whole numbers, as Arrow has them. The call fails when the target has no such column, or one of another type, or nulls
    that were not asked for.
    """
    return Column(name, dtype, nulls)


def array(dtype: Any) -> Any:
    """A parameter that is a one-dimensional array and travels in the payload. As the annotation of the result: an
    array goes back, which is a parameter or a slice of one."""
    return Array(dtype)


def out(dtype: Any, count: int) -> Any:
    """A parameter that is an array of `count` zeros at the target, to be filled: it is the answer."""
    return Out(dtype, count)


def external(symbol: str, result: Any, *arguments: Any) -> External:
    """A C function at the target, to be called in ifuncs: of a library that the ifunc declares (`deps=`) or of the
    target's application (`extern=`).

        hypot = tc.external("hypot", np.float64, np.float64, np.float64)

        @tc.ifunc(deps=["m"])
        def longest(a: float, b: float):
            return hypot(a, b)

    `result` is a number's type or None; arguments are types of numbers, or `tc.array(dtype)`, which passes an array's
    address. Nothing checks that this is how the function is declared in C.
    """
    return External(symbol, result, arguments)


class Failure(Exception):
    """`raise tc.Failure(7, "no such row")` in an ifunc: the caller gets a `RemoteError` with this code and message.

    Both must be constants. Any other exception travels as code -6 (TC_FAIL_EXCEPTION in ifunc.h), IndexError as -3 and
    arithmetic errors as -4.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)


@dataclass(frozen=True)
class Here:
    """What stands for the node while an ifunc is called plainly, in this process."""

    data: Collection[str]  # names of the data that the caller passed
    forward: Callable[[tuple[Any, ...]], int]


HERE: ContextVar[Here | None] = ContextVar("threechains_here", default=None)
_LOG = logging.getLogger("threechains")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def _here(function: str) -> Here:
    here = HERE.get()
    if here is None:
        raise NotAtANodeError(f"{function}() is for ifuncs: it has a meaning at a node, or within an ifunc that is called here")
    return here


def node_id() -> int:
    """In an ifunc: the number of the node that it runs on; 0 in one that is called here."""
    _here("node_id")
    return 0


def node_count() -> int:
    """In an ifunc: how many nodes its cluster has; 1 in one that is called here."""
    _here("node_count")
    return 1


def forward(node: int, *arguments: Any) -> int:
    """In an ifunc: sends the ifunc itself on to another node, with these arguments for the parameters that travel, and
    with the duty to answer: what the function returns here is not sent. 0 when it went well, else a Status.

    For ifuncs whose parameters that travel are numbers, or one array.
    """
    here = _here("forward")
    return here.forward(arguments) if node == 0 else int(Status.NOT_FOUND)


def forward_as(node: int, name: str, *payload: Any) -> int:
    """In an ifunc: sends another ifunc to a node, where it answers in the place of this one. `name` (a constant) is a
    bundled ifunc (`@tc.ifunc(bundled=[...])`), or an ifunc that this node knows. 0 when it went well, else a Status.

    The payload is one array; or numbers, in slots of 8 bytes: bool and whole numbers as 64-bit integers, others as
    float64, which is what an ifunc in Python with parameters `int` and `float` takes.
    """
    raise NotAtANodeError("forward_as() is for ifuncs, at nodes: submit the one that calls it, as to a LocalCluster")


def inject(node: int, name: str, *payload: Any) -> int:
    """In an ifunc: sends another ifunc to a node, and nobody waits for it. Otherwise like `forward_as`."""
    raise NotAtANodeError("inject() is for ifuncs, at nodes: submit the one that calls it, as to a LocalCluster")


def has_data(name: str) -> bool:
    """In an ifunc: does this node expose data under this name (a constant)?"""
    return name in _here("has_data").data


def log(level: int, message: str) -> None:
    """In an ifunc: writes a line (a constant) to the node's log. Levels: 0 debug, 1 info, 2 warning, 3 error."""
    _here("log")
    _LOG.log(_LEVELS[min(max(level, 0), 3)], "%s", message)
