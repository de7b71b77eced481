# SPDX-License-Identifier: Apache-2.0
"""Everything that is raised."""

from __future__ import annotations

import enum
from typing import Any

from threechains import _native


class Status(enum.IntEnum):
    """Every way in which Three-Chains can say no: include/threechains/status.h explains each."""

    OK = 0
    INVALID = 1
    NOT_FOUND = 2
    MALFORMED = 3
    VERSION = 4
    TOO_LARGE = 5
    DENIED = 6
    UNRESOLVED = 7
    NO_SLICE = 8
    COMPILE = 9
    TIMEOUT = 10
    DISCONNECTED = 11
    BUSY = 12
    IFUNC = 13
    LIMIT = 14
    NO_MEMORY = 15
    IO = 16
    UNSUPPORTED = 17
    CLOSED = 18
    INTERNAL = 19
    CRASHED = 20
    CANCELED = 21


class Error(Exception):
    """What the library said: `status` to decide on, `message` to read."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = Status(status)
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (int(self.status), self.message)


class RemoteError(Error):
    """A call that failed at its target, or on the way there or back.

    `node` is the number of the node that said so, `ifunc` the ifunc's name, `code` the number that the ifunc gave to
    tc_fail() or `Failure` (0 when it was not the ifunc that failed), `message` the whole sentence.
    """

    def __init__(self, status: int, message: str, *, node: int = 0, ifunc: str = "", code: int = 0) -> None:
        super().__init__(status, message)
        self.node = node
        self.ifunc = ifunc
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), int(self.status), self.message, self.node, self.ifunc, self.code)


def _rebuild(cls: type[RemoteError], status: int, message: str, node: int, ifunc: str, code: int) -> RemoteError:
    return cls(status, message, node=node, ifunc=ifunc, code=code)


class CallTimeout(RemoteError, TimeoutError):
    """No answer within the call's own deadline (`deadline=` of submit). The ifunc may still run."""


class CallCrashed(RemoteError):
    """The ifunc crashed in the cell that it ran in (docs/cells.md). Its node goes on; the message says where it was."""


class IfuncError(Error):
    """A function that cannot become an ifunc: `symbol` is what it stumbles over, `hint` what to do about it."""

    def __init__(self, message: str, symbol: str = "", hint: str = "", status: int = Status.COMPILE) -> None:
        super().__init__(status, message)
        self.symbol = symbol
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.symbol, self.hint, int(self.status))


class ArgumentError(Error):
    """An argument, or named data, that an ifunc does not take: `parameter` is its name. What is raised is one of its subclasses,
    which are also Python's TypeError, ValueError, OverflowError and IndexError."""

    def __init__(self, message: str, parameter: str = "") -> None:
        super().__init__(Status.INVALID, message)
        self.parameter = parameter

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.parameter)


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of another type than the ifunc takes, or too few or too many of them."""


class ArgumentValueError(ArgumentError, ValueError):
    """An argument of the right type, in a form that cannot travel."""


class ArgumentOverflowError(ArgumentError, OverflowError):
    """A number that the parameter's type does not hold."""


class ArgumentIndexError(ArgumentError, IndexError):
    """A number that no node has."""


class NotAtANodeError(Error, RuntimeError):
    """What has a meaning at a node only (`tc.node_id()` and the like) is called here."""

    def __init__(self, message: str) -> None:
        super().__init__(Status.INVALID, message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,)


def remote_error(call: _native.Call, ifunc: str) -> RemoteError:
    """What became of a ready call that failed."""
    status = call.status
    classes: dict[int, type[RemoteError]] = {Status.TIMEOUT: CallTimeout, Status.CRASHED: CallCrashed}
    cls = classes.get(status, RemoteError)
    return cls(status, call.error or _native.status_name(status), node=call.node, ifunc=ifunc, code=call.code)


_native.set_error_class(Error)
