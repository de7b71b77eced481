# SPDX-License-Identifier: Apache-2.0
"""`python3 -m threechains.build FILE.py --name NAME --target TRIPLE -o OUT.bc`: what `ifunc build FILE.py` runs.

Runs the file, as a module that is not `__main__`, and writes the bitcode of the function that is decorated with
@tc.ifunc and called NAME. What its callers pass and get goes to OUT.signature, as a bundle has it (docs/wire-format.md).
Functions are only collected while the file runs, and one is compiled: a file may hold many.
Exit code 65 (EX_DATAERR of sysexits.h) says that the file is at fault; what is wrong stands on standard error.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import threechains
from threechains._errors import IfuncError, Status
from threechains._ifunc import NUMBA

_REFUSED = 65  # src/toolchain/frontend.cc knows it


class Declared:
    """Stands for the ifunc in the file that declares it, and is never sent from there."""

    def __init__(self, function: Callable[..., Any], scope: Mapping[str, Any], options: dict[str, Any]) -> None:
        self.__wrapped__ = function
        self.scope = scope
        self.options = options
        self.name = str(options.get("name") or getattr(function, "__name__", "?"))

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self.call  # raises, as for all attributes

    def __getattr__(self, attribute: str) -> Any:
        raise IfuncError(f"'{attribute}' of ifunc '{self.name}' is asked for while its file is only compiled", attribute,
                         "put what runs it under: if __name__ == \"__main__\":", Status.INVALID)


def _collect(function: Callable[..., Any], *, scope: Mapping[str, Any], **options: Any) -> Declared:
    return Declared(function, scope, options)


def _declarations(path: pathlib.Path) -> dict[str, Declared]:
    """The ifuncs that the file has in its namespace, by their names."""
    spec = importlib.util.spec_from_file_location("ifunc_source", path)
    if spec is None or spec.loader is None:
        raise IfuncError(f"{path}: is no Python file", str(path), "its name must end with .py", Status.INVALID)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.append(str(path.parent))  # last: the file's neighbours may have the names of Python's own modules
    sys.dont_write_bytecode = True
    threechains.ifunc._collect = _collect
    try:
        spec.loader.exec_module(module)
    finally:
        threechains.ifunc._collect = None
    found: dict[str, Declared] = {}
    for value in vars(module).values():
        if isinstance(value, Declared) and found.setdefault(value.name, value) is not value:
            raise IfuncError(f"{path}: declares two ifuncs named '{value.name}'", value.name, "give one another name",
                             Status.INVALID)
    return found


def _choose(path: pathlib.Path, found: dict[str, Declared], name: str) -> Declared:
    if name in found:
        return found[name]
    if not found:
        raise IfuncError(f"{path}: declares no ifunc", name, "decorate a function with @tc.ifunc", Status.NOT_FOUND)
    names = ", ".join(f"'{known}'" for known in sorted(found))
    raise IfuncError(f"{path}: declares no ifunc '{name}'; it has {names}", name,
                     f"choose with --name: ifunc build {path.name} --name {sorted(found)[0]}", Status.NOT_FOUND)


def emit(path: pathlib.Path, name: str, target: str) -> tuple[bytes, bytes]:
    """The bitcode of one ifunc of a file, for one triple, and its signature. Raises IfuncError."""
    declared = _choose(path, _declarations(path), name)
    try:
        from threechains import _numba
        from threechains._signature import Signature
    except ImportError as error:
        raise IfuncError(f"{path}: @tc.ifunc needs Numba, which {sys.executable} lacks: {error}", "numba",
                         f"{sys.executable} -m pip install '{NUMBA}' numpy", Status.UNSUPPORTED) from None
    if declared.options.get("bundled"):
        raise IfuncError(f"{path}: '{name}' has bundled=, which another compilation cannot give it", "bundled",
                         "give them to ifunc build: --with NAME.ifunc", Status.INVALID)
    options = _numba.Options(**{key: value for key, value in declared.options.items() if key not in ("targets", "bundled")})
    function = declared.__wrapped__
    made = _numba.emit_bitcode(Signature.of(function, declared.name, declared.scope), function, options, [target])
    return made.bitcode[0], made.signature


def _explain(path: pathlib.Path, error: BaseException) -> str:
    """One that the file raised, with the file's own lines."""
    if isinstance(error, IfuncError):
        return f"{error}" if not error.hint or error.hint in str(error) else f"{error}; {error.hint}"
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in ("numba", "numpy", "llvmlite"):
        return f"{path}: {error}; {sys.executable} -m pip install '{NUMBA}' numpy"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    place = f"{path}:{frames[-1].lineno}" if frames else str(path)
    return f"{place}: {type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m threechains.build", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--name", help="which ifunc (the file's name, without its suffix)")
    parser.add_argument("--target", required=True, metavar="TRIPLE")
    parser.add_argument("-o", dest="output", required=True, type=pathlib.Path, metavar="OUT.bc")
    arguments, more = parser.parse_known_args()
    if more:
        print(f"Numba takes no options ({' '.join(more)}): they stand in the file, @tc.ifunc(fastmath=True)", file=sys.stderr)
        return _REFUSED
    path = pathlib.Path(os.path.abspath(arguments.file))
    try:
        bitcode, signature = emit(path, arguments.name or path.stem, arguments.target)
        arguments.output.write_bytes(bitcode)
        arguments.output.with_suffix(".signature").write_bytes(signature)
    except (Exception, SystemExit) as error:  # whatever the file does when it is run
        print(_explain(path, error), file=sys.stderr)
        return _REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
