# SPDX-License-Identifier: Apache-2.0
"""The nodes that functions are sent to."""

from __future__ import annotations

import asyncio
import itertools
import logging
import operator
import os
import pathlib
import selectors
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from threechains import _arrow, _data, _native, _progress, _tool
from threechains._errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError, Error, Status
from threechains._future import Future
from threechains._ifunc import Ifunc, as_ifunc
from threechains._node import Node

# That of calls that are given none.
_DEADLINE = 60.0
# Between being full and TC_ERR_BUSY: how long submit() and send() wait for room.
_ROOM_SECONDS = 10.0
# A terminal's Ctrl-C is for this program and not for its nodes. A session of their own would do as well, but Linux
# schedules each session as a whole (sched_autogroup): a thread that waits and yields would then not yield to them.
_OUT_OF_CTRL_C: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
# So long a flush may keep Ctrl-C waiting.
_SIGNALS_SECONDS = 0.1
# Between tries to reach a node that is gone.
_FIRST_PAUSE, _LONGEST_PAUSE, _TRY_SECONDS = 0.1, 5.0, 1.0
# From then on close() says what it waits for.
_QUIET_SECONDS = 2.0
_CLOSED = "this cluster is closed, or has no nodes"
_LOG = logging.getLogger("threechains")


class Endpoint:
    """One peer. Made by `Cluster`."""

    def __init__(self, node: Node, index: int, address: str) -> None:
        self._node = node
        self._engine = node._engine
        self._index = index
        self._is_lost = False  # and its cluster tries to reach it again
        self.address = address
        self._known = _data.HERE.get(address, _data.NOTHING)
        self._fits: dict[Any, Any] = {}  # ifuncs whose named data was checked, with what was known of the data then

    def submit(self, function: Ifunc, /, *args: Any, deadline: float | None = _DEADLINE, **named: Any) -> Future:
        """Sends the function there and gives the answer's future at once.

        `args` and `named` are what the function takes; for one written in C, one payload: anything with the buffer protocol,
        text or a `Message`. `deadline` is in seconds: after it the future fails with `CallTimeout` (None: never).
        """
        ifunc = as_ifunc(function)
        number = self._number(ifunc)
        future = Future(self._node, ifunc.name, ifunc.decode)
        if deadline != _DEADLINE:
            ifunc._refuse_ambiguous("deadline", args)
        if ifunc.encode is not None:
            parts = self._parts(ifunc, args, named)
            future._call = self._engine.call_parts(self._index, number, parts, 16, deadline, _ROOM_SECONDS, future)
            return future
        payload = _payload(ifunc, args, named)
        if type(payload) is _native.Message:
            self._check(payload, ifunc, number)
            future._call = self._engine.call_message(self._index, payload, deadline, _ROOM_SECONDS, future)
        else:
            future._call = self._engine.call(self._index, number, payload, deadline, _ROOM_SECONDS, future)
        return future

    def send(self, function: Ifunc, /, *args: Any, **named: Any) -> None:
        """Sends the function there and waits for nothing; `flush` tells whether it failed."""
        ifunc = as_ifunc(function)
        number = self._number(ifunc)
        if ifunc.encode is not None:
            self._engine.send_parts(self._index, number, self._parts(ifunc, args, named), 16, _ROOM_SECONDS)
            return
        payload = _payload(ifunc, args, named)
        if type(payload) is _native.Message:
            self._check(payload, ifunc, number)
            self._engine.send_message(self._index, payload, _ROOM_SECONDS)
        else:
            self._engine.send(self._index, number, payload, _ROOM_SECONDS)

    def flush(self, timeout: float = 10.0) -> None:
        """Waits until the peer has run everything sent to it. Raises the first failure since the last flush."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            try:
                return self._engine.flush(self._index, max(0.0, min(left, _SIGNALS_SECONDS)))
            except Error as error:
                if error.status != Status.TIMEOUT or left <= _SIGNALS_SECONDS:
                    raise

    def message(self, function: Ifunc, size: int) -> _native.Message:
        """A payload of `size` zero bytes to be written in place, and sent any number of times without being copied
        again in Python: `numpy.frombuffer(message)` is writable. It is for this ifunc and this node's endpoints."""
        ifunc = as_ifunc(function)
        return _native.make_message(self._engine, self._number(ifunc), ifunc.name, size)

    @property
    def status(self) -> Status:
        """Status.OK while the peer is there, else why not."""
        return Status(self._engine.endpoint_status(self._index))

    @property
    def peer(self) -> str:
        """The peer's name for itself."""
        return self._engine.peer(self._index)

    @property
    def transport(self) -> str:
        """How frames travel there: "shm", "unix", "tls", "tcp", "ucx" or "ucx-put"."""
        return self._engine.transport(self._index)

    def __repr__(self) -> str:
        return f"<threechains.Endpoint {self.address}>"

    def _number(self, ifunc: Ifunc) -> int:
        number = self._node._ifuncs.get(ifunc._identity)
        return self._node._register(ifunc) if number is None else number

    def _parts(self, ifunc: Ifunc, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """The payload of an ifunc that takes Python arguments, after a look at what is known of its named data."""
        if ifunc._data and self._fits.get(ifunc._identity) is not (kinds := self._known.kinds):
            _data.check(ifunc.name, ifunc._data, kinds)
            self._fits[ifunc._identity] = kinds
        assert ifunc.encode is not None
        return ifunc.encode(ifunc._bound(args, named) if named else args)

    def _check(self, message: _native.Message, ifunc: Ifunc, number: int) -> None:
        """A message carries its ifunc: another one would run than the one that was submitted."""
        if not message.is_for(self._engine, number):
            raise Error(Status.INVALID, f"the message was made for ifunc '{message.ifunc}', on its node, and is sent with "
                        f"ifunc '{ifunc.name}', from {self._node!r}; make one with Endpoint.message")


def _payload(ifunc: Ifunc, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    if named:
        ifunc._bound(args, named)  # refuses them
    if not args:
        return None
    if len(args) > 1:
        raise ArgumentTypeError(f"ifunc '{ifunc.name}' takes one payload but {len(args)} arguments were given")
    payload = args[0]
    if type(payload) is str:
        payload = payload.encode()
    if not isinstance(payload, (bytes, _native.Message)):
        try:
            view = memoryview(payload)
        except TypeError as error:
            raise ArgumentTypeError(f"the payload of ifunc '{ifunc.name}' is a {type(payload).__name__}, which has no bytes "
                                    f"to send: give bytes, text or an array ({error})") from None
        if not view.c_contiguous:
            raise ArgumentValueError(f"the payload of ifunc '{ifunc.name}' is not C-contiguous; send "
                                     "numpy.ascontiguousarray(...) of it")
    if ifunc.builds_payload and not isinstance(payload, _native.Message) and memoryview(payload).readonly:
        return bytearray(payload)  # its payload functions may write to it
    return payload


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


class Cluster:
    """Nodes to send functions to, by their addresses; a node's number is its place in the list.

    `node` is this process's own node; without one, a node is made and closed with the cluster. Any thread may use it.

    A node that is gone leaves the rotation of `submit` and `send`, which the logger "threechains" says, and is in it
    again when it can be reached again. Calls that were there when it went fail.
    """

    def __init__(self, addresses: Iterable[str], *, node: Node | None = None, timeout: float = 10.0) -> None:
        self._endpoints: list[Endpoint] = []
        self._closing = threading.Event()
        self._lost_lock = threading.Lock()
        if isinstance(addresses, str):
            raise ArgumentTypeError(f"Cluster takes a list of addresses, as [{addresses!r}], and not one text", "addresses")
        self._own_node = node is None
        self._node = node if node is not None else Node()
        self._next = itertools.count()
        try:
            for address in addresses:
                self._endpoints.append(Endpoint(self._node, self._node._engine.connect(address, timeout), address))
        except BaseException:
            self.close()
            raise

    def submit(self, function: Ifunc, /, *args: Any, node: int | None = None, deadline: float | None = _DEADLINE,
               **named: Any) -> Future:
        """Sends the function to one node, the next in turn when `node` is None, and gives the answer's future.

        `named` are arguments by name. A parameter that is called `node` or `deadline` is passed by place.
        """
        if node is not None:
            as_ifunc(function)._refuse_ambiguous("node", args)
        while True:
            endpoint = self._choose(node)
            try:
                return endpoint.submit(function, *args, deadline=deadline, **named)
            except Error as error:
                self._go_on_after(error, endpoint, node)

    def broadcast(self, function: Ifunc, /, *args: Any, deadline: float | None = _DEADLINE, **named: Any) -> list[Future]:
        """The same to all nodes: their futures, by number."""
        return [endpoint.submit(function, *args, deadline=deadline, **named) for endpoint in self._endpoints]

    def map(self, function: Ifunc, /, *iterables: Iterable[Any], deadline: float | None = _DEADLINE,
            progress: bool | None = None, **named: Any) -> Iterator[Any]:
        """Like the built-in map, spread over the nodes: all calls are sent at once, answers come in order.

        `named` are arguments by name, the same for each call; `node` sends all calls to one node. Calls are taken back whose
        answers nobody takes any more, as after a failure. `progress`: shows how many answers were taken, by tqdm where it is
        installed. None: where standard error is a terminal, and it takes longer than a second.
        """
        ifunc = as_ifunc(function)
        if not iterables:
            raise ArgumentTypeError(f"map of ifunc '{ifunc.name}' was given nothing to go through: write cluster.map({ifunc.name}, VALUES, "
                                    "...), with one iterable for each argument that changes", "iterables")
        if progress is not None:
            ifunc._refuse_ambiguous("progress", iterables)
        answers = self._in_order(ifunc, zip(*iterables), progress, {"deadline": deadline, **named})
        next(answers)
        return answers

    def _in_order(self, ifunc: Ifunc, calls: Iterable[tuple[Any, ...]], progress: bool | None,
                  named: Mapping[str, Any]) -> Iterator[Any]:
        """The answers, after a None when all calls are sent. A generator that has not begun has no `finally` to run, and would
        take back no calls when it is closed before its first answer."""
        futures: list[Future] = []
        try:
            for args in calls:
                futures.append(self.submit(ifunc, *args, **named))
            yield None
            for future in _progress.shown(futures, ifunc.name, progress):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def send(self, function: Ifunc, /, *args: Any, node: int | None = None, **named: Any) -> None:
        """Sends the function to one node and waits for nothing; `flush` tells whether it failed."""
        if node is not None:
            as_ifunc(function)._refuse_ambiguous("node", args)
        while True:
            endpoint = self._choose(node)
            try:
                return endpoint.send(function, *args, **named)
            except Error as error:
                self._go_on_after(error, endpoint, node)

    def flush(self, timeout: float = 10.0) -> None:
        """Waits until all nodes have run everything sent to them. Raises the first failure since the last flush."""
        for endpoint in self._endpoints:
            endpoint.flush(timeout)

    @property
    def addresses(self) -> list[str]:
        return [endpoint.address for endpoint in self._endpoints]

    @property
    def node(self) -> Node:
        """This process's own node."""
        return self._node

    @property
    def alive(self) -> list[int]:
        """The numbers of the nodes that can be reached now."""
        return [number for number, endpoint in enumerate(self._endpoints) if endpoint.status == Status.OK]

    def close(self) -> None:
        """Disconnects. Calls that still wait fail with Status.CLOSED, unless the node was given from outside."""
        self._closing.set()
        if self._own_node:
            self._node.close()
        elif not self._node.closed and not self._node._engine.inherited:
            for endpoint in self._endpoints:
                try:
                    self._node._engine.disconnect(endpoint._index, 1.0)
                except Error:
                    pass  # it is gone already
        self._endpoints = []

    def __getitem__(self, number: int) -> Endpoint:
        """As of a list: negative numbers count from the end."""
        try:
            return self._endpoints[number]
        except IndexError:
            raise ArgumentIndexError(f"there is no node {number}: the cluster has {_nodes(len(self))}", "number") from None
        except TypeError:
            raise ArgumentTypeError(f"cluster[{number!r}]: a {type(number).__name__} is no number of a node; give a whole number, as "
                                    "cluster[0]", "number") from None

    def __len__(self) -> int:
        return len(self._endpoints)

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._endpoints)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __repr__(self) -> str:
        gone = [] if self._node.closed else [number for number in range(len(self)) if number not in self.alive]
        words = f"; gone: {', '.join(map(str, gone))}" if gone else ""
        return f"<threechains.{type(self).__name__} of {len(self)}: {', '.join(self.addresses)}{words}>"

    def _choose(self, node: int | None) -> Endpoint:
        endpoints = self._endpoints
        if not endpoints:
            raise Error(Status.CLOSED, _CLOSED)
        if node is None:
            for _ in endpoints:
                endpoint = endpoints[next(self._next) % len(endpoints)]
                if not endpoint._is_lost:
                    return endpoint
            raise Error(Status.DISCONNECTED, f"no node can be reached: {', '.join(self.addresses)}{self._last_words()}")
        return endpoints[node] if type(node) is int and 0 <= node < len(endpoints) else self._numbered(node)

    def _numbered(self, node: Any, none: str = "the next in turn") -> Endpoint:
        """The endpoint of a number that may be NumPy's. A bool is an index to Python, and a mistake here. `none`: what None
        stands for."""
        count = len(self._endpoints)
        if not count:
            raise Error(Status.CLOSED, _CLOSED)
        taken = "give 0, its only one" if count == 1 else f"give a number from 0 to {count - 1}"
        try:
            number = operator.index(node)
        except TypeError:
            number = None
        if number is None or isinstance(node, bool):
            raise ArgumentTypeError(f"node={node!r} is no number of a node, but a {type(node).__name__}: {taken}, or None for {none}",
                                    "node")
        if not 0 <= number < count:
            raise ArgumentIndexError(f"there is no node {number}: the cluster has {_nodes(count)}; {taken}, or None for {none}",
                                     "node")
        return self._endpoints[number]

    def _go_on_after(self, error: Error, endpoint: Endpoint, node: int | None) -> None:
        """A call could not be sent. Raises the error, unless another node may take the call."""
        if error.status not in (Status.DISCONNECTED, Status.CLOSED) or endpoint.status == Status.OK:
            raise error
        self._lose(endpoint)
        if node is not None or not endpoint._is_lost:
            raise error

    def _last_words(self) -> str:
        """What a message about the loss of all nodes ends with."""
        return ""

    # ---- Nodes that are gone

    def _lose(self, endpoint: Endpoint) -> None:
        """Says that the node is gone, and begins to look for it."""
        with self._lost_lock:
            if endpoint._is_lost or self._closing.is_set() or self._node.closed:
                return
            endpoint._is_lost = True
            number = self._endpoints.index(endpoint)
        _LOG.warning("node %d at %s is gone: calls go to the other nodes until it can be reached again", number, endpoint.address)
        # It must not keep a cluster alive that nobody uses any more.
        search = (weakref.ref(self), self._closing, endpoint, number)
        threading.Thread(target=_search, args=search, name=f"threechains looks for node {number}", daemon=True).start()


def _search(cluster: weakref.ref[Cluster], closing: threading.Event, endpoint: Endpoint, number: int) -> None:
    """Until the node can be reached again, or nobody wants it any more."""
    pause, engine = _FIRST_PAUSE, endpoint._engine
    while not closing.wait(pause):
        if cluster() is None or engine.closed:
            return
        pause = min(2 * pause, _LONGEST_PAUSE)
        try:
            index = engine.connect(endpoint.address, _TRY_SECONDS)
        except Error:
            continue
        before, endpoint._index, endpoint._is_lost = endpoint._index, index, False
        _LOG.warning("node %d at %s can be reached again", number, endpoint.address)
        try:
            engine.disconnect(before, _TRY_SECONDS)
        except Error:
            pass  # that it is gone is why we are here
        return


class LocalCluster(Cluster):
    """`count` nodes on this machine, as processes that end with this object, or with this process.

    `data` gives them arrays by name: a file's path is mapped by all nodes, a buffer is copied into a file first (so
    that all nodes see, and change, the same one). Arrow tables, IPC and Parquet files are there by columns (`tc.column`,
    docs/arrow.md). `allow_libs` are shared libraries that ifuncs may use. `threads` are
    those of each node that run calls (docs/threads.md). `isolate` says which code runs in cells, where it may crash:
    "none", "untrusted" or "all" (docs/cells.md). With `restart` a node that dies is started again. `options` go to
    `ifunc cluster` as they are.
    """

    def __init__(self, count: int, *, data: Mapping[str, Any] | None = None, allow_libs: Sequence[str] = (),
                 threads: int | None = None, isolate: str | None = None, restart: bool = False,
                 options: Sequence[str] = (), timeout: float = 30.0) -> None:
        self._endpoints = []  # until it is made
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._directory = tempfile.TemporaryDirectory(prefix="threechains-", dir=_memory_directory())
        try:
            line = [_tool.command(), "cluster", str(count), *options]
            known = _data.Known()
            for name, value in _data.items_of(data):
                for one, file in self._files(name, value, count, known):
                    line += ["--data", f"{one}={file}"]
            for library in allow_libs:
                line += ["--allow-lib", library]
            if threads is not None:
                line += ["--threads", str(threads)]
            if isolate is not None:
                line += ["--isolate", isolate]
            if restart:
                line += ["--restart"]
            # The nodes live as long as the command. It ends by a line of ours, or with our end of its standard input.
            line += ["--", "/bin/sh", "-c", 'echo "$TC_CLUSTER_ADDRESSES"; read -r _']
            self._errors = open(os.path.join(self._directory.name, "stderr"), "w+b")
            self._process = subprocess.Popen(line, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             stderr=self._errors, **_OUT_OF_CTRL_C)
            _LOCAL_CLUSTERS.add(self)
            super().__init__(self._wait_until_ready(self._process, timeout), timeout=timeout)
            for endpoint in self._endpoints:
                endpoint._known = known
        except BaseException:
            self._end()
            raise

    def log(self, node: int | None = None) -> str:
        """What the nodes, or one of them, have written on standard error so far; also how those ended that died."""
        if node is not None:
            node = self._endpoints.index(self._numbered(node, "all nodes"))
        with open(self._errors.name, "rb") as file:
            text = file.read().decode(errors="replace")
        if node is None:
            return text
        own = (f"[node {node}] ", f"ifunc cluster: node {node} ")
        return "".join(line for line in text.splitlines(keepends=True) if line.startswith(own))

    def close(self) -> None:
        """Ends the nodes. When their calls keep it waiting, the logger "threechains" says so."""
        super().close()
        self._end()

    def _last_words(self) -> str:
        deaths = [line for line in self.log().splitlines() if line.startswith("ifunc cluster: node ")]
        return "; " + "; ".join(deaths[-3:]) if deaths else ""

    def _files(self, name: str, value: Any, count: int, known: _data.Known) -> list[tuple[str, str]]:
        """Named data as (name, FILE of `--data`) pairs: the data, and what describes it. What is known of it goes to `known`."""
        table = _arrow.files(name, value, count, pathlib.Path(self._directory.name))
        if table is not None:
            return table
        _data.check_name(name)
        files = [(name, self._file(name, value))]
        kind = _data.kind_of(value)
        if kind is not None:
            known.note(name, kind)
            files.append((name + _data.SUFFIX, self._file(name, kind.description()) + ":ro"))
        return files

    def _file(self, name: str, value: Any) -> str:
        if isinstance(value, (str, os.PathLike)):
            return os.path.abspath(value)
        path = pathlib.Path(self._directory.name, f"data-{len(list(pathlib.Path(self._directory.name).iterdir()))}")
        view = _data.view_of(name, value)
        path.write_bytes(view.cast("B") if view.nbytes else b"")
        return str(path)

    def _wait_until_ready(self, process: subprocess.Popen[bytes], timeout: float) -> list[str]:
        end = time.monotonic() + timeout
        text = b""
        with selectors.DefaultSelector() as selector:
            assert process.stdout is not None  # it is a pipe
            selector.register(process.stdout, selectors.EVENT_READ)
            while not text.endswith(b"\n"):
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise Error(Status.TIMEOUT, f"the nodes were not ready within {timeout} s: {self.log().strip()}")
                piece = os.read(process.stdout.fileno(), 65536)
                if not piece:
                    process.wait()
                    raise Error(Status.IO, f"the nodes could not be started: {self.log().strip()}")
                text += piece
        return text.decode().strip().split(",")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return  # a forked child leaves its parent's nodes alone
        assert process.stdin is not None and process.stdout is not None  # they are pipes
        try:
            if not process.stdin.closed:
                process.stdin.write(b"\n")  # a child that C code forked may hold the pipe open
        except OSError:
            pass  # the command has ended before
        process.stdin.close()
        for seconds, words in ((_QUIET_SECONDS, "close() waits for calls that still run at the nodes, 15 s at most"),
                               (15 - _QUIET_SECONDS, "the nodes have not ended within 15 s: they are killed")):
            try:
                process.wait(seconds)  # it gives its nodes 5 s
                break
            except subprocess.TimeoutExpired:
                _LOG.warning("%s", words)
        else:
            process.kill()
            process.wait()
        process.stdout.close()
        self._errors.close()
        self._directory.cleanup()


    def _leave(self) -> None:
        """In a forked child: the nodes and the directory are the parent's. They must not outlive it because of us."""
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.returncode = 0  # it is no child of this process
            self._errors.close()
            self._directory._finalizer.detach()  # type: ignore[attr-defined]


# Those whose pipes a forked child inherits.
_LOCAL_CLUSTERS: weakref.WeakSet[LocalCluster] = weakref.WeakSet()


def _leave_all() -> None:
    for cluster in list(_LOCAL_CLUSTERS):
        cluster._leave()


os.register_at_fork(after_in_child=_leave_all)


def _memory_directory() -> str | None:
    """Where files are memory."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
