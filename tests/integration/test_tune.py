# SPDX-License-Identifier: Apache-2.0
"""`ifunc bench tune`: that it measures three builds of the same kernels; what it measures is not judged here."""

import json

import pytest

import kit



@pytest.mark.release_only
def test_three_builds_of_three_kernels_are_measured(t):
    result = t.ifunc("bench", "tune", "--runs", "3", "--json", seconds=100)
    assert result.code == 0, result
    report = json.loads(result.out)
    assert report["bench"] == "tune" and "clang" in report["native_compiler"]
    assert [kernel["name"] for kernel in report["kernels"]] == ["saxpy", "dot", "search"]
    for kernel in report["kernels"]:
        unit = "gbytes_per_s" if kernel["name"] == "search" else "gflops"
        for build in ["generic", "tuned", "native"]:
            assert kernel[f"{build}_{unit}"] > 0, kernel
        assert kernel["tuned_ratio_to_native"] > 0, kernel


def test_a_machine_without_a_compiler_is_told_what_to_install(t):
    result = t.ifunc("bench", "tune", env={"TC_CLANG": "/nonexistent/clang"})
    assert result.code == 1 and "/nonexistent/clang" in result.err and "install clang-22" in result.err, result
