# SPDX-License-Identifier: Apache-2.0
"""An answer that will come."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from threechains import _native
from threechains._errors import Status, remote_error

# The states of the base class.
_RUNNING = "RUNNING"  # from the beginning: a call leaves at once
_CANCELLED = "CANCELLED_AND_NOTIFIED"
_FINISHED = "FINISHED"
_LOG = logging.getLogger("concurrent.futures")  # where the base class reports a callback that raises


class _Condition(threading.Condition):
    """Whose lock is as it should be when a signal's handler raises at any moment.

    The base class takes it for a `with` in a function of Python, and a handler that raises there leaves it taken for ever:
    the keeper thread then waits for it, and no future is settled any more. A handler that raises in wait() just when that
    has given the lock up would leave the `with` without it.
    """

    __enter__ = property(lambda self: self._lock.__enter__)
    __exit__ = property(lambda self: self._lock.__exit__)

    def wait(self, timeout: float | None = None) -> bool:
        try:
            return super().wait(timeout)
        finally:
            if not self._is_owned():  # type: ignore[attr-defined]  # typeshed does not know it
                self.acquire()


class Future(concurrent.futures.Future[Any]):
    """The answer to a call: a `concurrent.futures.Future` that can also be awaited.

    `concurrent.futures.wait`, `as_completed`, `add_done_callback` and `await` work on it. `result()` is quicker than
    these: the thread that waits in it polls the network itself. Any thread may use it.
    """

    def __init__(self, node: Any, ifunc: str, decode: Callable[[_native.Reply], Any] | None) -> None:
        # As the base class, whose own __init__ makes another lock in a quarter of the time of a call.
        self._condition = _Condition()
        self._state = _RUNNING
        self._result = self._exception = None
        self._waiters = []
        self._done_callbacks: list[Callable[[Future], Any]] = []
        self._node = node  # lives as long as somebody waits for an answer
        self._engine: _native.Engine = node._engine
        self._ifunc = ifunc
        self._decode = decode
        self._call: _native.Call  # from when it is sent, before anybody else sees the future

    def result(self, timeout: float | None = None) -> Any:
        """The answer, waiting for it at most `timeout` seconds (None: until the call's own deadline).

        Raises TimeoutError when it is not there in time (and can be asked again), `RemoteError` when the call failed.
        """
        if self._state == _RUNNING:
            left = self._wait(timeout)
            if self._state == _FINISHED and self._exception is None:
                return self._result
            try:
                return super().result(left)
            except concurrent.futures.TimeoutError:
                if self.done():
                    raise  # the call's own, of that class as well
                raise self._not_yet(timeout) from None
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error that `result` would raise, or None. Waits as `result` does."""
        if self._state == _RUNNING:
            left = self._wait(timeout)
            try:
                return super().exception(left)
            except concurrent.futures.TimeoutError:
                raise self._not_yet(timeout) from None
        return super().exception(timeout)

    def cancel(self) -> bool:
        """Takes the call back. True: it was not answered before, and nobody gets an answer any more.

        The node is told. It does not run a call that waits there, and ends one that runs in a cell, whose changes to named
        data stay. Any other call runs to its end, and its answer is dropped.
        """
        if self._state == _RUNNING:
            self._engine.cancel(self._call)
            self._wait(0)
        return self._call.status == Status.CANCELED

    def _not_yet(self, timeout: float | None) -> concurrent.futures.TimeoutError:
        return concurrent.futures.TimeoutError(f"ifunc '{self._ifunc}' has not answered within {timeout} s; it may be asked again")

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()

    def _wait(self, timeout: float | None) -> float | None:
        """Polls until the answer is there or the time is over. Returns what is left of the time: another thread may be
        about to settle the future."""
        call, wait = self._call, self._engine.wait
        if timeout is None:
            while not wait(call, None):
                pass
            return None
        end = time.monotonic() + timeout
        while not wait(call, timeout):
            timeout = end - time.monotonic()
            if timeout <= 0:
                return 0
        return max(0.0, end - time.monotonic())

    def _finish(self, call: _native.Call) -> None:
        """Settles the future. The module in C++ calls it for whoever claimed the call; and again, from the start, when a
        signal's handler raised in the middle."""
        if self._state == _RUNNING:
            state = _FINISHED
            if call.status == Status.OK:
                try:
                    reply = _native.reply(call)
                    self._result = reply if self._decode is None else self._decode(reply)
                except Exception as error:  # what came is not what the ifunc's author promised
                    self._exception = error
            elif call.status == Status.CANCELED:
                state = _CANCELLED
            else:
                self._exception = remote_error(call, self._ifunc)
            with self._condition:
                self._state = state
        # Who comes from here on sees the state, so who is not there yet need not be told.
        waiting = self._condition._waiters  # type: ignore[attr-defined]  # typeshed does not know it
        if waiting or self._waiters or self._done_callbacks:
            self._tell_all()
        self._node = None

    def _tell_all(self) -> None:
        with self._condition:
            for waiter in self._waiters:
                if self not in waiter.finished_futures:
                    self._tell(waiter)
            self._condition.notify_all()
        self._invoke_callbacks()

    def _tell(self, waiter: Any) -> None:
        if self._state == _CANCELLED:
            waiter.add_cancelled(self)
        elif self._exception is None:
            waiter.add_result(self)
        else:
            waiter.add_exception(self)

    def _invoke_callbacks(self) -> None:
        """As the base class does it. But a callback that raises what is no Exception (sys.exit(), Ctrl-C) takes the
        others nothing away, and none is called twice."""
        first: BaseException | None = None
        callbacks = self._done_callbacks
        while callbacks:
            try:
                callbacks[0](self)
            except Exception:
                _LOG.exception("exception calling callback for %r", self)
            except BaseException as error:
                first = first or error
            finally:
                del callbacks[0]
        if first is not None:
            raise first
