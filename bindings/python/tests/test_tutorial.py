# SPDX-License-Identifier: Apache-2.0
"""docs/python.md and docs/arrow.md are programs: their blocks run one after another, and what they print is what the page says."""

import subprocess
import sys

import pytest
from conftest import blocks_of

pytest.importorskip("numba", reason="the tutorial uses the extra [numba]")


@pytest.mark.parametrize("page", ["python.md", "arrow.md"])
def test_the_tutorial_runs_and_prints_what_it_says(page, tmp_path):
    if page == "arrow.md":
        pytest.importorskip("pyarrow", reason="the page uses the extra [arrow]")
    blocks = blocks_of(page)
    program = tmp_path / "tutorial.py"
    program.write_text("\n".join(block for block, _ in blocks))
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(shown for _, shown in blocks)
