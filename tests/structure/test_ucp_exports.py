# SPDX-License-Identifier: Apache-2.0
"""An ifunc that runs at a node of libucp_ifunc may call the functions of its header, except those that decide what it may call."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
OF_THE_OPERATOR = {"ucp_ifunc_allow_export"}


def test_each_function_of_the_header_can_be_called_by_ifuncs():
    header = (ROOT / "include/threechains/ucp_ifunc.h").read_text()
    declared = set(re.findall(r"^(?!static)\w[\w ]*[ *](ucp_\w+)\(", header, re.M))
    exported = set(re.findall(r"TC_EXPORT\((ucp_\w+)\);", (ROOT / "src/ucp_ifunc/exports.cc").read_text()))
    assert len(declared) > 10
    assert exported == declared - OF_THE_OPERATOR
