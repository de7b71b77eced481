# SPDX-License-Identifier: Apache-2.0
"""`python -m threechains --prefix`: where programs in C and C++ find this package's headers, library and CMake files."""

from __future__ import annotations

import argparse

from threechains import __version__, _tool


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m threechains", description=__doc__)
    parser.add_argument("--version", action="version", version=f"threechains {__version__}")
    parser.add_argument("--prefix", action="store_true",
                        help="print the folder with include/, lib/, lib/cmake/ and lib/pkgconfig/: what CMAKE_PREFIX_PATH takes")
    given = parser.parse_args()
    if not given.prefix:
        parser.error("nothing to do: --prefix is what there is; the command of this package is `ifunc`")
    print(_tool.ROOT)


main()
