# SPDX-License-Identifier: Apache-2.0
"""The package's types are complete and consistent, and tell a program that uses it what it gets."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT, blocks_of

pytest.importorskip("mypy", reason="mypy is not installed")
PROGRAM = """
from typing import Annotated
import numpy as np
import numpy.typing as npt
import threechains as tc

Column = Annotated[npt.NDArray[np.float64], tc.data("prices", np.float64)]

@tc.ifunc
def above(limit: float, prices: Column) -> int:
    return int((prices > limit).sum())

@tc.ifunc(boundscheck=True, concurrent=True, deps=["m"])
def twice(x: float) -> float:
    return x * 2

def ask(cluster: tc.Cluster) -> tc.Future:
    view = memoryview(cluster[0].message(above, 8))
    reveal_type(view.nbytes)
    reveal_type(above)
    reveal_type(twice)
    print(twice(1.0), cluster.submit(above, limit=1.0, node=0))
    try:
        return cluster.submit(above, 1.0)
    except tc.ArgumentError as error:
        raise tc.ArgumentTypeError(error.parameter) from error

async def wait(cluster: tc.LocalCluster) -> None:
    await ask(cluster)
    cluster.submit(len, 1)
"""


def mypy(*arguments, cwd=ROOT):
    return subprocess.run([sys.executable, "-m", "mypy", "--cache-dir=/dev/null", *arguments], cwd=cwd,
                          capture_output=True, text=True, timeout=300, check=False)


def test_mypy_finds_nothing_in_the_package_and_its_stubs():
    done = mypy("--config-file", "pyproject.toml")
    assert done.returncode == 0, done.stdout


def test_a_program_is_told_what_it_gets_and_what_it_does_wrong(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = mypy("--strict", "program.py", cwd=tmp_path)
    notes = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if "note: Revealed" in line]
    assert [note.split('"')[1].split(".")[-1] for note in notes] == ["int", "Ifunc", "Ifunc"], done.stdout
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1 and 'incompatible type "Callable' in errors[0], done.stdout


# What docs/python.md tells those to write who use type checkers, which take annotations for types. The page itself is for readers.
FOR_CHECKERS = 'Annotated[npt.NDArray[np.float64], tc.data("prices",\nnp.float64)]'


COLUMN_FOR_CHECKERS = 'Annotated[Any, tc.column("trips.city", str)]'
# pyarrow has none, or some that say little.
WITHOUT_TYPES_OF_PYARROW = """
[mypy]
[mypy-pyarrow.*]
ignore_missing_imports = True
follow_imports = skip
"""


def for_checkers(page):
    """The program of a page, with annotations for type checkers, and how many these are."""
    program = "\n".join(block for block, _ in blocks_of(page))
    program, columns = re.subn(r': (tc\.column\("[\w.]+", (?:str|bool|np\.\w+, nulls=True)[^)]*\))', r": Annotated[Any, \1]", program)
    program, arrays = re.subn(r': (tc\.(?:data|column|array|out)\((?:"[\w.]+", )?(np\.\w+)[^)]*\))', r": Annotated[npt.NDArray[\2], \1]",
                              program)
    return "from typing import Annotated, Any\nimport numpy.typing as npt\n" + program, arrays, columns


def test_mypy_finds_nothing_in_the_tutorial_with_the_annotations_that_it_has_for_type_checkers(tmp_path):
    assert FOR_CHECKERS in (ROOT / "docs/python.md").read_text()
    program, arrays, _ = for_checkers("python.md")
    assert arrays > 5
    (tmp_path / "tutorial.py").write_text(program)
    done = mypy("--strict", "tutorial.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_mypy_finds_nothing_in_the_page_about_arrow_with_the_annotations_that_it_has_for_type_checkers(tmp_path):
    assert COLUMN_FOR_CHECKERS in (ROOT / "docs/arrow.md").read_text()
    program, arrays, columns = for_checkers("arrow.md")
    assert (arrays, columns) == (4, 4)
    (tmp_path / "page.py").write_text(program)
    (tmp_path / "mypy.ini").write_text(WITHOUT_TYPES_OF_PYARROW)
    done = mypy("--strict", "page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
