# SPDX-License-Identifier: Apache-2.0
"""`ifunc bench languages`: what other languages execute at a target is what C executes. Times are not judged here."""

import json
import os
import shutil

import pytest

import kit



def check(t, language):
    result = t.ifunc("bench", "languages", "--runs", "2", "--lang", language, "--json", seconds=100)
    assert result.code == 0, result
    report = json.loads(result.out)
    assert report["bench"] == "languages", report
    made = [(kernel["name"], kernel["form"]) for kernel in report["kernels"]]
    assert made == [("dot", "tuned"), ("dot", "generic"), ("chaser", "tuned"), ("chaser", "generic")], made
    for kernel in report["kernels"]:
        assert kernel["c"]["call_ns"] > 0 and kernel[language]["time_ratio_to_c"] > 0, kernel
        if os.uname().machine == "x86_64":
            assert kernel["c"]["instructions"] > 100, kernel
            assert kernel[language]["instructions"] <= 1.05 * kernel["c"]["instructions"], kernel


@pytest.mark.release_only
def test_rust_executes_as_few_instructions_as_c(t):
    if not shutil.which(os.environ.get("TC_RUSTC") or "rustc"):
        pytest.skip("there is no rustc")
    check(t, "rust")


@pytest.mark.release_only
def test_julia_executes_as_few_instructions_as_c(t):
    if not (os.environ.get("TC_JULIA") or shutil.which("julia")):
        pytest.skip("there is no julia; `scripts/test julia` runs this")
    check(t, "julia")


def test_a_missing_compiler_is_named_with_the_remedy(t):
    result = t.ifunc("bench", "languages", "--lang", "rust", env={"TC_RUSTC": "/nonexistent/rustc"})
    assert result.code == 1 and "/nonexistent/rustc" in result.err, result
    assert "dot.rs cannot be built on this machine" in result.err, result
