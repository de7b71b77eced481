# SPDX-License-Identifier: Apache-2.0
"""The version stands in include/threechains/version.h; the packages for other languages have the same."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["pyproject.toml", "bindings/julia/Project.toml", "bindings/rust/threechains-ifunc/Cargo.toml"]


def test_the_version_is_the_same_everywhere():
    header = (ROOT / "include/threechains/version.h").read_text()
    version = ".".join(re.findall(r"^#define TC_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M))
    found = {name: re.search(r'^version = "([^"]*)"', (ROOT / name).read_text(), re.M).group(1) for name in PACKAGES}
    assert found == dict.fromkeys(PACKAGES, version)
