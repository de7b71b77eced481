# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest
import threechains as tc

ROOT = pathlib.Path(__file__).resolve().parents[3]

ECHO = """
#include <threechains/ifunc.h>
void echo_main(void *payload, size_t size, void *target_args) { (void)target_args; tc_reply(payload, size); }
"""
WHO = """
#include <threechains/ifunc.h>
void who_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)size, (void)target_args;
  uint32_t id = tc_id();
  tc_reply(&id, sizeof id);
}
"""
REFUSE = """
#include <threechains/ifunc.h>
void refuse_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)size, (void)target_args;
  tc_fail(42, "no such row");
}
"""
SLOW = """
#include <threechains/ifunc.h>
void slow_main(void *payload, size_t size, void *target_args) {
  (void)target_args;
  volatile uint64_t *left = payload;
  if (size == 8) while (*left) --*left;
  tc_reply(payload, size);
}
"""


def blocks_of(page):
    """The programs of a page of docs, each with what it prints."""
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.M | re.S)
    assert len(blocks) > 5
    return blocks


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory):
    """No test uses the keys of who tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THREECHAINS_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def cluster():
    with tc.LocalCluster(2) as nodes:
        yield nodes


@pytest.fixture(scope="session")
def echo():
    return tc.ifunc.from_c(ECHO)


@pytest.fixture(scope="session")
def who():
    return tc.ifunc.from_c(WHO)


@pytest.fixture(scope="session")
def refuse():
    return tc.ifunc.from_c(REFUSE)


@pytest.fixture(scope="session")
def slow():
    """Counts down from the payload's number: 2e9 take about a second."""
    return tc.ifunc.from_c(SLOW)


@pytest.fixture
def script(tmp_path, echo, slow):
    """Runs a program of its own, and gives what became of it. echo.ifunc and slow.ifunc lie where it runs."""
    echo.save(tmp_path / "echo.ifunc")
    slow.save(tmp_path / "slow.ifunc")

    def run(source, *, start=False, stdin=None):
        path = tmp_path / "program.py"
        # Where the tests are a shell's job in the background, SIGINT is ignored, and Python leaves it so.
        heed = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        path.write_text(heed + "import threechains as tc\n" + textwrap.dedent(source))
        line = [sys.executable, str(path)]
        if start:
            return subprocess.Popen(line, cwd=tmp_path, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    start_new_session=True)
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    return run
