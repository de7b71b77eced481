# SPDX-License-Identifier: Apache-2.0
"""What the parameters of an ifunc written in Python can be. Needs neither Numba nor NumPy to be imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Data:
    """See `data`."""

    name: str
    dtype: Any


@dataclass(frozen=True)
class Array:
    """See `array`."""

    dtype: Any


@dataclass(frozen=True)
class Out:
    """See `out`."""

    dtype: Any
    count: int


def data(name: str, dtype: Any) -> Any:
    """A parameter that is not sent: an array at the target, which exposes it under this name.

        def total(prices: tc.data("prices", np.float64)) -> np.float64: ...

    The call fails when the target exposes no such data.
    """
    return Data(name, dtype)


def array(dtype: Any) -> Any:
    """A parameter that is a one-dimensional array and travels in the payload."""
    return Array(dtype)


def out(dtype: Any, count: int) -> Any:
    """A parameter that is an array of `count` zeros at the target, to be filled: it is the answer."""
    return Out(dtype, count)


class Failure(Exception):
    """`raise tc.Failure(7, "no such row")` in an ifunc: the caller gets a `RemoteError` with this code and message.

    Both must be constants. Any other exception travels as code -1.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)


def node_id() -> int:
    """In an ifunc: the number of the node that it runs on."""
    raise RuntimeError("node_id() is for ifuncs: it has a meaning at a target only")


def node_count() -> int:
    """In an ifunc: how many nodes its cluster has."""
    raise RuntimeError("node_count() is for ifuncs: it has a meaning at a target only")


def forward(node: int, *arguments: Any) -> int:
    """In an ifunc: sends the ifunc itself on to another node, with these arguments for the parameters that travel, and
    with the duty to answer: what the function returns here is not sent. 0 when it went well, else a Status.

    For ifuncs whose parameters that travel are numbers, or one array.
    """
    raise RuntimeError("forward() is for ifuncs: it has a meaning at a target only")
