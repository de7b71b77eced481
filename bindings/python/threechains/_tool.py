# SPDX-License-Identifier: Apache-2.0
"""Where the `ifunc` command is, and how it is run."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from threechains._errors import IfuncError, Status


def _root() -> pathlib.Path:
    """Where bin/ifunc is: in this package, or, when Debian's package brought it, in the prefix that it is installed below."""
    package = pathlib.Path(__file__).parent.absolute()
    own = package / "_install"
    return own if own.exists() else next((above for above in package.parents if (above / "bin/ifunc").exists()), own)


ROOT = _root()


def offer_ucx() -> None:
    """Names the UCX of the package libucx, when it is installed beside this one, for nodes here and in processes that we start."""
    ucx = pathlib.Path(__file__).absolute().parents[1] / "libucx/lib/libucp.so.0"
    if "TC_UCX" not in os.environ and ucx.exists():
        os.environ["TC_UCX"] = str(ucx)


def command() -> str:
    """The path of the `ifunc` command: $TC_IFUNC, or the one in this package."""
    return os.environ.get("TC_IFUNC") or str(ROOT / "bin/ifunc")


def build(inputs: Sequence[str], name: str, options: Sequence[str] = (), clang_flags: Sequence[str] = ()) -> bytes:
    """The bundle that `ifunc build` makes. Raises IfuncError with its words."""
    with tempfile.TemporaryDirectory(prefix="threechains-") as directory:
        output = pathlib.Path(directory, f"{name}.ifunc")
        _run_build([*inputs, "-o", str(output), "--name", name, "--quiet", *options], clang_flags)
        return output.read_bytes()


def _run_build(arguments: Sequence[str], clang_flags: Sequence[str]) -> None:
    toolchain = ROOT / "libexec/threechains/ifunc-toolchain"
    program = [str(toolchain)] if toolchain.exists() and "TC_IFUNC" not in os.environ else [command()]
    line = [*program, "build", *arguments]
    if clang_flags:
        line += ["--", *clang_flags]
    env = {"TC_PYTHON": sys.executable, **os.environ}  # the Python that is asked for ziglang
    try:
        done = subprocess.run(line, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        words = f"cannot run {line[0]}: {error}; $TC_IFUNC names the ifunc command"
        raise IfuncError(words, status=Status.IO) from None
    if done.returncode != 0:
        raise _refused(done.stderr.strip() or f"ifunc build ended with exit code {done.returncode}")


def _refused(words: str) -> IfuncError:
    """An importer's sentence as an exception: `FILE:LINE: 'SYMBOL' is called but …; what to do`."""
    sentences = [line.removeprefix("ifunc build: ") for line in words.splitlines() if line.startswith("ifunc build: ")]
    errors = [line for line in sentences if not line.startswith("warning: ")]
    sentence = errors[-1] if errors else words
    symbol = sentence.split("'")[1] if sentence.count("'") >= 2 else ""
    hint = sentence.split("; ", 1)[1] if "; " in sentence else ""
    return IfuncError(words if not errors or len(words.splitlines()) > 1 else sentence, symbol, hint)
