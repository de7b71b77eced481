# SPDX-License-Identifier: Apache-2.0
import os
import shutil

import lit.formats

config.name = "three-chains"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".c", ".cc", ".rs"]
rustc = os.environ.get("TC_RUSTC") or shutil.which("rustc")
if rustc:
    config.available_features.add("rustc")
config.test_exec_root = lit_config.params["scratch"]
# `%asm-x86 --cpu CPU` and `%asm-arm --cpu CPU`: what a node with that CPU runs.
config.substitutions += [
    ("%FileCheck", lit_config.params["filecheck"]),
    ("%not", lit_config.params["not"]),
    ("%ifunc", lit_config.params["ifunc"]),
    ("%build", f"{lit_config.params['ifunc']} build --quiet"),
    ("%asm-x86", f"{lit_config.params['ifunc']} inspect --asm --target x86_64-linux-gnu"),
    ("%asm-arm", f"{lit_config.params['ifunc']} inspect --asm --target aarch64-linux-gnu"),
]
