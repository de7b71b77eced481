# SPDX-License-Identifier: Apache-2.0
"""The `ifunc` command of this package: it becomes the program. It imports nothing, as importing `threechains` takes longer
than most commands."""

import os
import sys


def main() -> None:
    """`ifunc build foo.py` asks the Python that the package is in."""
    os.environ.setdefault("TC_PYTHON", sys.executable)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    ucx = os.path.join(here, "libucx", "lib", "libucp.so.0")
    if "TC_UCX" not in os.environ and os.path.exists(ucx):
        os.environ["TC_UCX"] = ucx
    program = os.environ.get("TC_IFUNC") or os.path.join(here, "threechains", "_install", "bin", "ifunc")
    try:
        os.execv(program, ["ifunc", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"ifunc: cannot run {program}: {error.strerror}; install threechains again, or name the command by $TC_IFUNC")
