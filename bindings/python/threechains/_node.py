# SPDX-License-Identifier: Apache-2.0
"""A node: this process's place in the system."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any

from threechains import _arrow, _data, _native
from threechains._errors import ArgumentTypeError, Error, Status
from threechains._ifunc import Ifunc

_LOG = logging.getLogger("concurrent.futures")  # callbacks that raise are reported there


def _keep(engine: _native.Engine) -> None:
    """The keeper thread: settles futures that no thread waits for."""
    while True:
        try:
            if not engine.keep():
                return
        except BaseException:  # a callback's, as sys.exit(): a thread that waits for other calls needs this one
            _LOG.exception("exception calling a callback of a threechains.Future")


def _end(engine: _native.Engine, keeper: threading.Thread) -> None:
    """Ends a node. Also when nobody refers to it any more, and when the interpreter exits."""
    if engine.inherited or engine.closed:
        return
    engine.stop_keeping()
    try:
        if threading.current_thread() is not keeper:
            keeper.join()
    finally:  # also after Ctrl-C: this runs only once
        engine.close()


class Node:
    """A node that other processes can connect to, and that can connect to others.

    `data` are arrays (or other buffers), Arrow tables, and paths of Arrow IPC and Parquet files, that ifuncs find here by name;
    more can be exposed later. All other options
    are those of docs/options.md (`ifunc options`), with _ for -: `Node(listen="0.0.0.0:7001", key="default")`.

    It serves from the start, by a thread of its own, until it is closed, or nobody refers to it any more. Any thread
    may use it. A process that is forked from this one cannot.
    """

    def __init__(self, data: Mapping[str, Any] | None = None, **options: Any) -> None:
        pairs: list[tuple[str, str]] = []
        for key, value in options.items():
            if isinstance(value, bool):
                value = "on" if value else "off"
            for item in value if isinstance(value, (list, tuple)) and key != "cluster" else [value]:
                pairs.append((key.replace("_", "-"), ",".join(item) if isinstance(item, (list, tuple)) else str(item)))
        self._engine = _native.Engine(pairs)
        self._exposed: dict[str, memoryview] = {}
        self._outlived: list[memoryview] = []  # withdrawn, but calls on other threads may still use them
        self._known = _data.Known()
        self._companions: dict[str, tuple[str, bytes]] = {}  # what describes data, by its name: a name and a content
        self._changing = threading.Lock()
        self._ifuncs: dict[tuple[str, int], int] = {}
        self._lock = threading.Lock()
        self._keeper = threading.Thread(target=_keep, args=(self._engine,), name="threechains keeper", daemon=True)
        self._keeper.start()
        self._finalizer = weakref.finalize(self, _end, self._engine, self._keeper)
        try:
            for name, buffer in _data.items_of(data):
                self.expose(name, buffer)
            if self.address:
                _data.HERE[self.address] = self._known
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """Where others connect to: "127.0.0.1:41234"; empty when nobody can."""
        return self._engine.address()

    @property
    def closed(self) -> bool:
        return self._engine.closed

    def expose(self, name: str, buffer: Any) -> None:
        """Gives ifuncs this buffer by name: tc_data(name), or an argument `tc.data(name, dtype)`.

        They see the memory itself and may write to it (an ifunc that writes to memory that is mapped read-only takes
        this process down). It is kept alive until `withdraw` or the node's end. An array must be C-contiguous.

        A node with several threads waits for calls that use what the name stood for before, up to ten seconds for each name
        that changes. Then it raises Status.BUSY: calls that begin from now on find the new buffer, and the node keeps both alive.

        An array has two names: `name`, and `name`.type, which says what it is, so that ifuncs of any process are refused
        that take it for something else. Bytes have one.

        An Arrow table, or the path of an Arrow IPC or Parquet file, is there by its columns (`tc.column`). An IPC file is
        mapped, and the columns of others are copied. It has two names, `name` and `name`.columns.
        """
        if _arrow.is_table(buffer) or isinstance(buffer, (str, os.PathLike)):
            body, directory = self._table(name, buffer)
            self._replace(name, memoryview(body), (name + _arrow.SUFFIX, directory))
            return
        _data.check_name(name)
        view, kind = _data.view_of(name, buffer), _data.kind_of(buffer)
        self._replace(name, view, None if kind is None else (name + _data.SUFFIX, kind.description()), kind)

    def withdraw(self, name: str) -> None:
        """Takes the name back. Ifuncs that run from now on do not find it.

        A node with several threads waits up to ten seconds for calls that use the buffer. Then it raises Status.BUSY,
        and keeps the buffer alive until its own end.
        """
        _data.check_name(name)
        self._replace(name, None)

    def stat(self, name: str) -> int:
        """One number about the node; docs/statistics.md lists the names."""
        return self._engine.stat(name)

    def stats(self) -> dict[str, int]:
        """All numbers about the node, by name: `{"executed": 3, "code-bytes": 8192, ...}`."""
        return {name: self._engine.stat(name) for name in _native.statistics()}

    def reload_keys(self) -> None:
        """Reads the keyring anew, as `ifunc serve` does on SIGHUP.

        Connections of keys that were revoked or taken out end within a second. A keyring that is wrong is
        an error, and the node goes on with the one that it has.
        """
        self._engine.reload_keys()

    def serve(self, timeout: float | None = None) -> None:
        """Blocks for `timeout` seconds, or until Ctrl-C or close(): the node serves anyway."""
        end = None if timeout is None else time.monotonic() + timeout
        while self._keeper.is_alive() and not self.closed:
            left = 0.5 if end is None else min(0.5, end - time.monotonic())
            if left <= 0:
                return
            self._keeper.join(left)

    def close(self) -> None:
        """Disconnects from all peers. Calls that wait fail with Status.CLOSED."""
        self._finalizer()
        for address in [known for known, node in _data.HERE.items() if node is self._known]:
            del _data.HERE[address]
        if not self._engine.inherited:
            self._exposed.clear()
            self._outlived.clear()

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<threechains.Node {'closed' if self.closed else self.address or 'that nobody connects to'}>"

    def _table(self, name: str, table: Any) -> tuple[Any, bytes]:
        """Memory with the columns of a table or file, and the directory that describes it."""
        if not _arrow.is_table(table) and not _arrow.kind_of_file(table):
            raise ArgumentTypeError(f"data '{name}': {os.fspath(table)!r} is no Arrow IPC or Parquet file that can be read; map others with "
                            "numpy.memmap(path, dtype)", name)
        _arrow.check_name(name)
        return _arrow.in_memory(table)

    def _replace(self, name: str, view: memoryview | None, companion: tuple[str, bytes] | None = None,
                 kind: _data.Kind | None = None) -> None:
        """What the name stands for, and the companion that describes it. Raises Status.BUSY after all were changed.

        The old companion goes first and the new one comes last, so that neither ever stands beside data that it does not
        describe. A call that begins in between finds data without a companion, and does not check it. Data that is withdrawn goes
        before its companion, as calls that still run may make each change wait.
        """
        with self._changing:
            before = self._companions.pop(name, None)
            changes: list[tuple[str, memoryview | None, _data.Kind | None]] = [(name, view, kind)]
            if before is not None and before != companion:
                changes.insert(0 if view is not None else 1, (before[0], None, None))
            if companion is not None:
                self._companions[name] = companion
                if before != companion:
                    changes.append((companion[0], memoryview(companion[1]), None))
            busy: Error | None = None
            for change in changes:
                try:
                    self._change(*change)
                except Error as error:
                    if error.status != Status.BUSY:
                        raise
                    busy = error
            if busy is not None:
                raise busy

    def _change(self, name: str, view: memoryview | None, kind: _data.Kind | None) -> None:
        """What one name stands for; None: nothing. The caller holds the lock."""
        busy: Error | None = None
        try:
            if view is None:
                self._engine.withdraw(name)
            else:
                self._engine.expose(name, view)
        except Error as error:
            if error.status != Status.BUSY:
                raise
            busy = error  # it is changed, but calls on other threads still use what was there before
        self._known.note(name, kind)
        before = self._exposed.pop(name, None)
        if view is not None:
            self._exposed[name] = view
        if busy is not None:
            if before is not None:
                self._outlived.append(before)
            raise busy

    def _register(self, ifunc: Ifunc) -> int:
        """The number under which this node knows an ifunc."""
        number = self._ifuncs.get(ifunc._identity)
        if number is None:
            with self._lock:
                number = self._ifuncs.get(ifunc._identity)
                if number is None:
                    number = self._ifuncs[ifunc._identity] = self._engine.register(ifunc.bundle)
        return number
