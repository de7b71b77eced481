# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys

import pytest
from conftest import ROOT

pytest.importorskip("numba", reason="the example uses the extra [numba]")


def test_questions_to_a_columns_holder_give_what_fetching_gives():
    line = [sys.executable, str(ROOT / "examples/07-columns/columns.py"), "--rows", "20000", "--rounds", "2", "--json",
            "--without-dask"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    questions = json.loads(done.stdout)["questions"]
    assert set(questions) == {"above", "by_region", "dearest"}
    assert all(set(by_way) == {"ifunc", "fetch"} for by_way in questions.values())


def test_the_benchmark_prints_json():
    line = [sys.executable, "-m", "threechains.bench", "--json", "--without-dask", "--without-numba", "--rounds", "1"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result["round_trip_us"]) == {"ifunc", "pool_apply", "process_pool", "times_faster", "pinned"}
    assert set(result["megabyte_gb_per_s"]) == {"memcpy", "there", "back"}
