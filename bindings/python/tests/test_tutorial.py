# SPDX-License-Identifier: Apache-2.0
"""docs/python.md is a program: its blocks run one after another, and what they print is what it says."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

pytest.importorskip("numba", reason="the tutorial uses the extra [numba]")


def test_the_tutorial_runs_and_prints_what_it_says(tmp_path):
    text = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.M | re.S)
    assert len(blocks) > 8
    program = tmp_path / "tutorial.py"
    program.write_text("\n".join(block for block, _ in blocks))
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(shown for _, shown in blocks)
