# SPDX-License-Identifier: Apache-2.0
"""The functions that injected code may call are listed once, in src/wire/abi_names.h. What declares them besides, the
header for authors and the toolchains of other languages, declares the same.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = (ROOT / "src/wire/abi_names.h").read_text()


def functions():
    listed = re.search(r"#define TC_ABI_FUNCTIONS\(X\) \\\n((?:.*\\\n)*.*)", NAMES).group(1)
    return set(re.findall(r"X\((\w+)\)", listed))


def suffixes():
    return set(re.findall(r'_suffix = "(\w+)"', NAMES))


def text_of(folder, ending):
    return "\n".join(file.read_text() for file in sorted((ROOT / folder).rglob("*" + ending)))


def problems():
    known = functions()
    declared = set(re.findall(r"^\w[\w ]*[ *](tc_\w+)\(", (ROOT / "include/threechains/ifunc.h").read_text(), re.M))
    if declared != known:
        yield f"include/threechains/ifunc.h declares {sorted(declared)} when abi_names.h lists {sorted(known)}"
    rust = text_of("bindings/rust/threechains-ifunc/src", ".rs")
    declared = {name for name in re.findall(r"\bfn (tc_\w+)\(", rust) if not name.startswith("tc_algebraic_")}
    if declared != known:
        yield f"bindings/rust declares {sorted(declared)} when abi_names.h lists {sorted(known)}"
    for file in ("_numba.py", "_calls.py"):
        named = set(re.findall(r'"(tc_[a-z_]+)"', (ROOT / "bindings/python/threechains" / file).read_text()))
        if unknown := named - known:
            yield f"bindings/python/threechains/{file} calls {sorted(unknown)}, which abi_names.h does not list"
    julia = text_of("bindings/julia/src", ".jl")
    named = set(re.findall(r'declare\([^)"]*"(tc_[a-z_]+)"', julia))
    if unknown := named - known:
        yield f"bindings/julia calls {sorted(unknown)}, which abi_names.h does not list"
    mark = re.search(r'concurrent = "(\w+)"', NAMES).group(1)
    for place, text in (("include/threechains", text_of("include/threechains", "ifunc.h")), ("bindings/rust", rust),
                        ("bindings/python", text_of("bindings/python/threechains", ".py")), ("bindings/julia", julia)):
        if not re.search(rf"\b{mark}\b", text):
            yield f"{place} marks concurrent code with another constant than '{mark}'"
    entries = set(re.findall(r'"(_main|_payload_\w+)"', julia))
    if unknown := entries - suffixes():
        yield f"bindings/julia makes entries {sorted(unknown)}, which abi_names.h does not list"


def test_the_lists_are_found():
    assert {"tc_reply", "tc_fail"} < functions()
    assert {"_main", "_payload_init"} < suffixes()


def test_every_toolchain_names_the_functions_of_the_abi_alike():
    wrong = list(problems())
    assert not wrong, "\n".join(wrong)
