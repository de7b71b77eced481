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


def test_questions_in_a_dask_cluster_have_the_answers_of_dask():
    for package in ("distributed", "pandas", "pyarrow"):
        pytest.importorskip(package, reason="the example uses the extras [dask] and [arrow]")
    line = [sys.executable, str(ROOT / "examples/12-dask/rides.py"), "--rows", "20000", "--small", "20", "--rounds", "2", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    questions = json.loads(done.stdout)["questions"]
    assert set(questions) == {"one_partition", "small_partitions", "sum_of_all_rows", "sums_by_city", "any_function_by_city"}
    assert all(set(by_way) == {"dask", "ifunc"} for by_way in questions.values())
    # About half of the rows belong to the other worker: 8 bytes each.
    assert questions["any_function_by_city"]["ifunc"]["bytes"] > 20000 * 8 / 4


def test_the_benchmark_prints_json():
    line = [sys.executable, "-m", "threechains.bench", "--json", "--without-dask", "--without-numba", "--rounds", "1"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result["round_trip_us"]) == {"ifunc", "pool_apply", "process_pool", "times_faster", "pinned"}
    assert set(result["megabyte_gb_per_s"]) == {"memcpy", "there", "back"}
