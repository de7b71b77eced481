# SPDX-License-Identifier: Apache-2.0
"""Compares the C API's binary interface with the dump that is stored beside this file (libabigail's abidiff).

    test_abi.py COMPILER LIBRARY            fails when the interface is another one, and says where
    test_abi.py COMPILER LIBRARY --renew    stores the interface as it is now: for a change that is meant

The interface is what the public headers say, so a library made of them alone is compared: one empty function for each
declaration, compiled by COMPILER. LIBRARY is libthreechains.so, which must have exactly these functions.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
STORED = HERE / "libthreechains.abi"
HEADERS = ["threechains.h", "benchmark.h"]


def declarations():
    text = "\n".join(path.read_text() for path in sorted((INCLUDE / "threechains").glob("*.h")))
    return re.findall(r"^TC_API ([^;{]*)\)\s*;", text, re.M)


def empty_library(compiler, directory):
    source, library = directory / "interface.c", directory / "libthreechains.so"
    lines = [f"#include <threechains/{header}>" for header in HEADERS]
    lines += [f"{declaration}) {{ __builtin_trap(); }}" for declaration in declarations()]
    source.write_text("\n".join(lines) + "\n")
    subprocess.run([compiler, "-g", "-gdwarf-4", "-O0", "-fPIC", "-shared", "-nostdlib", "-Wno-return-type", "-I", INCLUDE,
                    "-Wl,-soname,libthreechains.so", "-o", library, source], check=True, cwd=directory)
    return library


def functions(library):
    names = subprocess.run(["nm", "--dynamic", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r" T (\w+)$", names, re.M))


def main():
    compiler, product = sys.argv[1:3]
    if shutil.which("abidiff") is None:
        print("SKIP abidiff is not installed (Debian: abigail-tools)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        library = empty_library(compiler, pathlib.Path(directory))
        if "--renew" in sys.argv:
            subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--out-file", STORED, library],
                           check=True)
            stored = pathlib.Path(STORED)
            stored.write_text(re.sub(r"path='[^']*/interface\.c'", "path='interface.c'", stored.read_text()))
            return
        declared, exported = functions(library), functions(product)
        if declared != exported:
            print(f"declared and not exported: {sorted(declared - exported)}")
            print(f"exported and not declared: {sorted(exported - declared)}")
            sys.exit(1)
        done = subprocess.run(["abidiff", "--no-show-locs", STORED, library], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout + done.stderr)
            print("The binary interface of the C API has changed. If that is meant, renew the stored one (CONTRIBUTING.md).")
            sys.exit(1)


if __name__ == "__main__":
    main()
