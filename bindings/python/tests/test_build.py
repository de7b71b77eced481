# SPDX-License-Identifier: Apache-2.0
"""`ifunc build foo.py`."""

import inspect
import json
import os
import pathlib
import struct
import subprocess
import sys

import pytest
import threechains as tc
from conftest import ROOT

pytest.importorskip("numba", reason="the extra [numba] is not installed")

MANY = """
import numpy as np
import threechains as tc

@tc.ifunc
def twice(x: float):
    return x * 2

@tc.ifunc(name="thrice", fastmath=True)
def other(x: float):
    return x * 3

if __name__ == "__main__":
    print(twice.content_id)
"""


@pytest.fixture
def build(tmp_path):
    """Runs `ifunc build` on a file of this text, in the file's folder."""

    def run(source, *options, name="foo", env=None):
        (tmp_path / f"{name}.py").write_text(source)
        line = [tc._tool.command(), "build", f"{name}.py", *options]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "TC_PYTHON": sys.executable, **(env or {})})

    return run


def test_a_python_file_becomes_a_bundle_for_all_processors(cluster, build, tmp_path):
    done = build(MANY, "--name", "twice")
    assert done.returncode == 0, done.stderr
    assert "x86_64-linux-gnu, aarch64-linux-gnu" in done.stdout
    twice = tc.ifunc.load(tmp_path / "twice.ifunc")
    assert cluster.submit(twice, 2.5).result() == 5.0
    raw = tc.Ifunc((tmp_path / "twice.ifunc").read_bytes())
    assert cluster.submit(raw, struct.pack("d", 2.5)).result().array("f8")[0] == 5.0
    done = build(MANY, "--name", "thrice", "--target", "riscv64-linux-gnu")
    assert done.returncode == 0 and "riscv64-linux-gnu" in done.stdout, done.stderr


SCALED = """
import numpy as np
import threechains as tc

@tc.ifunc
def scaled(x: np.float64, /, by: int = 3, weights: tc.array(np.float32) = (0.5, 2.0)) -> np.float64:
    \"\"\"x, so many times.\"\"\"
    return x * by * weights[1]
"""


def test_a_file_that_was_built_takes_arguments_as_a_saved_one_does(cluster, build, tmp_path):
    done = build(SCALED, name="scaled")
    assert done.returncode == 0 and "python-signature" not in done.stdout, done.stdout + done.stderr
    built = tc.ifunc.load(tmp_path / "scaled.ifunc")
    names = {}
    exec(SCALED, names)
    names["scaled"].save(tmp_path / "saved.ifunc")
    assert str(inspect.signature(built)) == str(inspect.signature(tc.ifunc.load(tmp_path / "saved.ifunc")))
    assert built.__doc__ == "x, so many times."
    assert cluster.submit(built, 1.5, by=2).result() == 6.0
    with pytest.raises(tc.ArgumentTypeError, match="no parameter 'bye'"):
        cluster.submit(built, 1.5, bye=2)
    assert built.content_id == names["scaled"].content_id, "the same code and signature, whoever builds it"


def test_a_file_that_was_built_for_one_target_has_its_signature_too(build, tmp_path):
    done = build(SCALED, "--target", "riscv64-linux-gnu", name="scaled")
    assert done.returncode == 0, done.stderr
    assert list(inspect.signature(tc.ifunc.load(tmp_path / "scaled.ifunc")).parameters) == ["x", "by", "weights"]


def test_a_file_that_takes_other_arguments_for_another_target_is_refused(build):
    source = "import sys\nimport threechains as tc\nkind = float if any('x86' in one for one in sys.argv) else int\n"
    done = build(source + "@tc.ifunc\ndef foo(x: kind): return 2\n")
    assert done.returncode == 1 and "takes other arguments, or has another answer, for aarch64-linux-gnu" in done.stderr


def test_concurrent_is_taken_from_the_file(build, tmp_path):
    for name, line, said in (("foo", "@tc.ifunc(concurrent=True)", True), ("bar", "@tc.ifunc", False)):
        done = build(f"import threechains as tc\n{line}\ndef {name}(x: float): return x\n", name=name)
        assert done.returncode == 0, done.stderr
        shown = subprocess.run([tc._tool.command(), "inspect", "--json", tmp_path / f"{name}.ifunc"], capture_output=True,
                               text=True, timeout=60, check=True).stdout
        assert json.loads(shown)["concurrent"] is said


def test_a_function_that_has_the_files_name_needs_no_choice(build, tmp_path):
    done = build(MANY, name="twice")
    assert done.returncode == 0, done.stderr
    assert tc.ifunc.load(tmp_path / "twice.ifunc").name == "twice"


def test_without_a_choice_the_functions_are_named(build):
    for options in ((), ("--name", "nosuch")):
        done = build(MANY, *options)
        assert done.returncode == 1
        assert "it has 'thrice', 'twice'; choose with --name: ifunc build foo.py --name thrice" in done.stderr
    done = build(MANY + "\n@tc.ifunc(name='twice')\ndef again(x: float): return x\n", "--name", "twice")
    assert "two ifuncs named 'twice'" in done.stderr
    assert "decorate a function with @tc.ifunc" in build("x = 1\n").stderr


def test_what_the_file_does_wrong_is_told_with_its_line(build):
    assert "foo.py:3: KeyError: 'nowhere'" in build("import os\n\nos.environ['nowhere']\n").stderr
    assert "SyntaxError" in build("def (:\n").stderr
    done = build("import threechains as tc\n@tc.ifunc\ndef foo(x: float): print(x)\n")
    assert done.returncode == 1 and "reply with what is to be shown" in done.stderr
    done = build("import threechains as tc\n@tc.ifunc\ndef foo(x: float): return x\nfoo.save('x')\n")
    assert done.returncode == 1 and 'if __name__ == "__main__"' in done.stderr
    assert "pip install" not in done.stderr  # nothing is missing
    done = build("import threechains as tc\n@tc.ifunc\ndef foo(x: float): return x\nfoo(1.5)\n")
    assert done.returncode == 1 and 'if __name__ == "__main__"' in done.stderr
    assert "Numba takes no options (-O3)" in build(MANY, "--name", "twice", "--", "-O3").stderr


def test_what_is_missing_is_told_with_the_command_that_installs_it(build, tmp_path):
    blocked = tmp_path / "blocked/numba"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'numba'\", name='numba')\n")
    done = build(MANY, "--name", "twice", env={"PYTHONPATH": str(blocked.parent)})
    assert done.returncode == 1
    assert f"{sys.executable} -m pip install 'numba==0.68.*' numpy" in done.stderr
    plain = tmp_path / "plain"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(plain)], check=True)
    done = build(MANY, "--name", "twice", env={"TC_PYTHON": str(plain / "bin/python"), "PYTHONPATH": ""})
    assert done.returncode == 1 and "No module named 'threechains'" in done.stderr
    assert f"{plain / 'bin/python'} -m pip install '.[numba]'" in done.stderr
    done = build(MANY, "--name", "twice", env={"TC_PYTHON": "", "PATH": str(tmp_path)})
    assert done.returncode == 1 and "there is no python3" in done.stderr


def test_files_with_the_names_of_pythons_own_modules_do_no_harm(build):
    source = "import threechains as tc\n@tc.ifunc\ndef token(x: float): return x\n"
    done = build(source, name="token")
    assert done.returncode == 0, done.stderr


def test_numba_is_asked_for_in_the_version_that_the_package_is_for():
    from threechains._ifunc import NUMBA

    assert f'numba = ["{NUMBA}"' in pathlib.Path(ROOT, "pyproject.toml").read_text()
