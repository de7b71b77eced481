# SPDX-License-Identifier: Apache-2.0
"""Functions that can be sent."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from threechains import _bundle, _native, _tool
from threechains._errors import ArgumentTypeError, Error, IfuncError, Status

if TYPE_CHECKING:  # they import NumPy
    from threechains._signature import Answer, Parameter, Signature

_PAYLOAD_INIT = 4 | 16  # of the manifest's entries: the 2021 and the 2022 form

NUMBA = "numba==0.68.*"  # as in pyproject.toml
# Both architectures, so that an .ifunc file runs wherever it is taken.
_TARGETS = ("x86_64-linux-gnu", "aarch64-linux-gnu")


class Ifunc:
    """A function that can be sent: a bundle of code for several kinds of machines.

    Made by `tc.ifunc`. `encode` turns arguments into pieces of a payload and `decode` a reply into a value; without
    them the argument is the payload, and the reply is the value. Ifuncs are values: they can be compared, copied and pickled.
    """

    def __init__(self, bundle: bytes, encode: Callable[[tuple[Any, ...]], list[Any]] | None = None,
                 decode: Callable[[_native.Reply], Any] | None = None) -> None:
        manifest = _bundle.manifest_of(bundle)
        self.bundle = bundle
        self.encode = encode
        self.decode = decode
        self.name = manifest[5 : 5 + manifest[4]].decode("ascii", "replace")
        self.content_id = hashlib.sha256(manifest).hexdigest()
        # Under which nodes register it. Signatures of keys change the bundle, and not its content id.
        self._identity = (self.content_id, hash(bundle))
        # Does it build payloads by functions of its own? They get the source args to read and write.
        self.builds_payload = bool(manifest[2] & _PAYLOAD_INIT)
        self._signature: Signature | None = None
        self._answer: Answer | None = None
        self._data: tuple[Parameter, ...] = ()  # its named data
        self._own: frozenset[str] = frozenset()  # parameters that are called as keywords of submit() are
        self.__wrapped__: Callable[..., Any] | None  # the Python function that it was made of, where that is here
        self.__name__ = self.__qualname__ = self.name
        self.__doc__ = None

    @classmethod
    def _with_signature(cls, bundle: bytes) -> Ifunc:
        """One whose bundle may say what its callers pass."""
        ifunc = cls(bundle)
        text = _bundle.signature_in(bundle)
        if text is None:
            return ifunc
        try:
            from threechains import _signature
        except ImportError as error:
            raise Error(Status.UNSUPPORTED, f"ifunc '{ifunc.name}' takes Python arguments, which needs NumPy: {error}; "
                        "pip install numpy") from None
        signature, answer, doc = _signature.from_text(text)
        ifunc.encode, ifunc.decode = signature.encoder(), answer.decoder(ifunc.name)
        ifunc._signature, ifunc._answer, ifunc.__doc__ = signature, answer, doc
        ifunc._data = tuple(parameter for parameter in signature.parameters if parameter.kind == "data")
        ifunc._own = _SUBMITS.intersection(parameter.name for parameter in signature.travelling)
        vars(ifunc)["__signature__"] = signature.for_inspection(answer)  # for inspect.signature
        return ifunc

    def _is_of(self, function: Callable[..., Any]) -> None:
        """It was made of this Python function."""
        functools.update_wrapper(self, function, updated=())
        self.__doc__ = inspect.getdoc(function)
        del vars(self)["__signature__"]

    def bind(self, *args: Any, **named: Any) -> tuple[Any, ...]:
        """The arguments by place: those that are given by name, and defaults, are put where the function has them.
        `submit(f, *f.bind(1.5, node=3))` passes a parameter that is called as a keyword of submit() is."""
        return self._bound(args, named)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the .ifunc file, for `ifunc send`, programs in other languages, and `tc.ifunc.load`."""
        pathlib.Path(path).write_bytes(self.bundle)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Calls the Python function here, without a node, for tests. docs/python.md says what named data, answers and
        `tc.node_id()` are then."""
        function = vars(self).get("__wrapped__")
        if function is None or self._signature is None or self._answer is None:
            why = "was loaded or unpickled, without its Python function" if self._signature is not None else "is no Python function"
            raise ArgumentTypeError(f"ifunc '{self.name}' {why}: its machine code runs at nodes only; write "
                                    f"cluster.submit({self.name}, ...).result(), for tests with cluster = tc.LocalCluster(1)")
        from threechains import _plain

        return _plain.call(function, self._signature, self._answer, args, named)

    def __copy__(self) -> Ifunc:
        """Itself, as for Python's functions: a copy that is called plainly needs the function, which no pickle holds."""
        return self

    def __deepcopy__(self, _: object) -> Ifunc:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._signature is None:
            return Ifunc, (self.bundle, self.encode, self.decode)
        return _unpickled, (self.bundle, self.__module__, self.__name__, self.__qualname__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ifunc):
            return NotImplemented
        if self._signature is None and (self.encode, self.decode) != (other.encode, other.decode):
            return False
        return self.bundle == other.bundle and (self._signature is None) == (other._signature is None)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"<threechains.Ifunc {self.name} {self.content_id[:12]}, {len(self.bundle)} bytes>"

    def _bound(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        if self._signature is not None:
            return self._signature.bind(args, named)
        if named:
            raise ArgumentTypeError(f"ifunc '{self.name}' takes one payload and no argument named '{next(iter(named))}'",
                                    next(iter(named)))
        return args

    def _refuse_ambiguous(self, keyword: str, args: tuple[Any, ...]) -> None:
        """submit() or map() was given this keyword of its own, and the function has a parameter of the same name: it has its
        value from its place then, or it may be what was meant."""
        if keyword in self._own and self._signature is not None:
            called = "map" if keyword == "progress" else "submit"
            place = [parameter.name for parameter in self._signature.travelling].index(keyword)
            if place >= len(args):
                raise ArgumentTypeError(f"'{keyword}' is a parameter of ifunc '{self.name}' and a keyword of {called}(): pass the "
                                        f"parameter by place (it is number {place + 1}), or by f.bind(...)", keyword)


# Keywords of submit(), send() and map().
_SUBMITS = frozenset({"node", "deadline", "progress"})


def _unpickled(bundle: bytes, module: str, name: str, qualname: str) -> Ifunc:
    ifunc = Ifunc._with_signature(bundle)
    ifunc.__module__, ifunc.__name__, ifunc.__qualname__ = module, name, qualname
    return ifunc


def as_ifunc(function: Any) -> Ifunc:
    if isinstance(function, Ifunc):
        return function
    raise ArgumentTypeError(f"{function!r} is no ifunc: decorate it with @tc.ifunc, or use tc.ifunc.from_c, from_bitcode, load")


def _choices(targets: Sequence[str], extern: Sequence[str]) -> list[str]:
    """Options of `ifunc build`."""
    return [word for target in targets for word in ("--target", target)] + \
        [word for symbol in extern for word in ("--extern", symbol)]


def _is_path(text: str) -> bool:
    return "\n" not in text and "{" not in text


def _compile(function: Callable[..., Any], *, scope: Mapping[str, Any], targets: Sequence[str] = _TARGETS,
             bundled: Sequence[Any] = (), **options: Any) -> Ifunc:
    if isinstance(targets, str) or not targets:
        raise IfuncError(f"targets={targets!r} is no list of triples", "targets", f"targets={list(_TARGETS)}", Status.INVALID)
    try:
        from threechains import _numba
    except ImportError as error:
        raise IfuncError(f"@tc.ifunc needs Numba: {error}", "numba", f"pip install '{NUMBA}' numpy",
                         Status.UNSUPPORTED) from None
    along = [as_ifunc(one).bundle for one in bundled]
    ifunc = Ifunc._with_signature(_numba.compile_ifunc(function, _numba.Options(**options), targets, along, scope))
    ifunc._is_of(function)
    return ifunc


class IfuncMaker:
    """`tc.ifunc`: a decorator, and the other ways to get an ifunc."""

    def __init__(self) -> None:
        # What happens to a decorated function in place of being compiled: build.py collects them.
        self._collect: Callable[..., Any] | None = None

    @overload
    def __call__(self, function: Callable[..., Any], /) -> Ifunc: ...

    @overload
    def __call__(self, /, *, name: str | None = None, targets: Sequence[str] = _TARGETS,
                 boundscheck: bool = False, fastmath: bool = False, concurrent: bool = False,
                 extern: Sequence[str] = (), deps: Sequence[str] = (),
                 bundled: Sequence[Ifunc] = ()) -> Callable[[Callable[..., Any]], Ifunc]: ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Makes an ifunc of a Python function, compiled by Numba for all `targets`.

            @tc.ifunc
            def above(limit: np.float64, prices: tc.data("prices", np.float64)) -> np.int64: ...

        Annotations say what travels: NumPy's scalar types, `tc.array`, `tc.data`, `tc.column`, `tc.out`. Raises `IfuncError` with
        the symbol and a hint when it cannot run elsewhere. Options: `name`; `targets` (triples); `boundscheck` (an
        index that is out of bounds fails the call; off); `fastmath` (off); `concurrent` (a node may run it at the same
        time as other code: it writes no data that other code uses, and reads none that other code writes; off);
        `extern` (functions that the target's application exports); `deps` (shared libraries that it uses, as "m");
        `bundled` (ifuncs that travel along, for `tc.inject` and `tc.forward_as`). Needs Numba.
        """
        # Annotations that are strings (`from __future__ import annotations`) may name what is local to the caller.
        scope = sys._getframe(1).f_locals
        finish: Callable[..., Any] = self._collect or _compile
        make = functools.partial(finish, scope=scope, **options)
        return make if function is None else make(function)

    def from_c(self, source: str | os.PathLike[str], *, name: str | None = None,
               targets: Sequence[str] = _TARGETS, extern: Sequence[str] = (), deps: Sequence[str] = (),
               flags: Sequence[str] = ()) -> Ifunc:
        """Makes an ifunc of C: a file's path (.c, .cc, .cpp), or the source itself.

        `name` is taken from the file, or from NAME_main in the source. `deps` are libraries that it uses at the target
        (in addition to NAME.deps), `flags` are clang's.
        """
        if not isinstance(source, str) or _is_path(source):
            path = pathlib.Path(source)
            return self._from_file(path, name or path.stem, targets, extern, deps, flags)
        if name is None:
            found = re.search(r"\b(\w+)_main\s*\(", source)
            if found is None:
                raise IfuncError("the source defines no NAME_main", "", "define void NAME_main(void *payload, size_t "
                                 "payload_size, void *target_args), NAME being the ifunc's name", Status.NOT_FOUND)
            name = found.group(1)
        with tempfile.TemporaryDirectory(prefix="threechains-") as directory:
            path = pathlib.Path(directory, f"{name}.c")
            path.write_text(source)
            return self._from_file(path, name, targets, extern, deps, flags)

    def from_bitcode(self, bitcode: bytes | str | os.PathLike[str] | Sequence[bytes | str | os.PathLike[str]], *, name: str,
                     extern: Sequence[str] = (), deps: Sequence[str] = ()) -> Ifunc:
        """Makes an ifunc of LLVM bitcode (or assembly, .ll) that defines NAME_main: bytes or a path, or a list of them
        with one for each target triple."""
        given = [bitcode] if isinstance(bitcode, (bytes, bytearray, str, os.PathLike)) else list(bitcode)
        with tempfile.TemporaryDirectory(prefix="threechains-") as directory:
            paths = []
            for i, item in enumerate(given):
                if isinstance(item, (bytes, bytearray)):
                    path = pathlib.Path(directory, f"{name}{i or ''}.bc")
                    path.write_bytes(item)
                    paths.append(str(path))
                else:
                    paths.append(os.fspath(item))
            if deps and os.path.dirname(paths[0]) != directory:
                paths[0] = shutil.copy(paths[0], directory)
            if deps:
                pathlib.Path(paths[0]).with_suffix(".deps").write_text("\n".join(deps) + "\n")
            return Ifunc(_tool.build(paths, name, _choices((), extern)))

    def load(self, path: str | os.PathLike[str]) -> Ifunc:
        """Reads an .ifunc file. One that `save` wrote takes the same arguments as before, and decodes its answer; without that,
        as bytes, it is `tc.Ifunc(pathlib.Path(path).read_bytes())`."""
        return Ifunc._with_signature(pathlib.Path(path).read_bytes())

    def _from_file(self, path: pathlib.Path, name: str, targets: Sequence[str], extern: Sequence[str],
                   deps: Sequence[str], flags: Sequence[str]) -> Ifunc:
        if not deps:
            return Ifunc(_tool.build([str(path)], name, _choices(targets, extern), flags))
        with tempfile.TemporaryDirectory(prefix="threechains-") as directory:
            copy = pathlib.Path(directory, path.name)
            copy.write_bytes(path.read_bytes())
            declared = path.with_suffix(".deps")
            lines = [declared.read_text()] if declared.exists() else []
            copy.with_suffix(".deps").write_text("\n".join([*lines, *deps]) + "\n")
            return Ifunc(_tool.build([str(copy)], name, _choices(targets, extern), [f"-I{path.parent.resolve()}", *flags]))


ifunc = IfuncMaker()
