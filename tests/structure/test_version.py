# SPDX-License-Identifier: Apache-2.0
"""Numbers of versions: each stands in one header, and packages and pages have the same."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["pyproject.toml", "bindings/julia/Project.toml", "bindings/rust/threechains-ifunc/Cargo.toml"]


def test_the_version_is_the_same_everywhere():
    header = (ROOT / "include/threechains/version.h").read_text()
    version = ".".join(re.findall(r"^#define TC_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M))
    found = {name: re.search(r'^version = "([^"]*)"', (ROOT / name).read_text(), re.M).group(1) for name in PACKAGES}
    assert found == dict.fromkeys(PACKAGES, version)


# The constant, its file, and how the page begins to say it.
FORMATS = [
    ("manifest_version", "src/wire/bundle_format.h", r"\| version \| 1 byte \| (\d+);"),
    ("greeting_version", "src/transport/greeting.h", r"\| 4 \| 1 \| version of the greeting, (\d+);"),
    ("protocol_version", "src/wire/frame.h", r"\| 0 \| protocol \| 4 bytes \| (\d+);"),
]


def test_the_page_of_the_wire_formats_has_the_versions_of_the_code():
    page = (ROOT / "docs/wire-format.md").read_text()
    for name, header, row in FORMATS:
        version = re.search(rf"^inline constexpr uint\d+_t {name} = (\d+);", (ROOT / header).read_text(), re.M).group(1)
        assert re.findall(f"^{row}", page, re.M) == [version], name
