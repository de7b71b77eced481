# SPDX-License-Identifier: Apache-2.0
import os
import shutil

import lit.formats

config.name = "three-chains"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".c", ".cc", ".rs", ".jl", ".ll"]
rustc = os.environ.get("TC_RUSTC") or shutil.which("rustc")
if rustc:
    config.available_features.add("rustc")
if os.environ.get("TC_JULIA") or shutil.which("julia"):
    config.available_features.add("julia")
for name in ["TC_JULIA", "TC_JULIA_PREFIX", "TC_RUSTC", "TC_CLANG", "TC_LIBRARY", "HOME", "XDG_CACHE_HOME", "RUSTUP_HOME",
             "CARGO_HOME"]:
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.test_exec_root = lit_config.params["scratch"]
tool = lit_config.params["ifunc"]
filecheck = lit_config.params["filecheck"]
invert = lit_config.params["not"]
clang = os.environ.get("TC_CLANG") or shutil.which("clang-22") or "clang"
# `%asm-x86 --cpu CPU` and `%asm-arm --cpu CPU`: what a node with that CPU runs. `%refuses FILE`: what somebody hears who
# builds it. `%cases %s %t`: takes a test apart whose files begin with lines `//--- NAME`. `%bitcode -o OUT FILE`: bitcode of a
# front end that knows x86-64 alone.
source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
config.substitutions += [
    ("%examples", f"{source}/examples"),
    ("%languages", f"{source}/bench/languages"),
    ("%FileCheck", filecheck),
    ("%refuses", f"{invert} {tool} build --quiet 2>&1"),
    ("%not", invert),
    ("%cases", lit_config.params["split"]),
    ("%bitcode", f"{clang} --target=x86_64-linux-gnu -O1 -gline-tables-only -emit-llvm -c"),
    ("%ifunc", tool),
    ("%build", f"{tool} build --quiet"),
    ("%asm-x86", f"{tool} inspect --asm --target x86_64-linux-gnu"),
    ("%asm-arm", f"{tool} inspect --asm --target aarch64-linux-gnu"),
]
