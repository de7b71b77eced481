# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that run processes, and the list of their cases for ctest.

    TC_BUILD_DIR=build/asan python3 -m pytest tests/integration/test_travel.py -k deadline
"""

import shutil
import tempfile

import pytest

from kit import Home, Workspace

LABELS = ("release_only", "measured", "mixed")  # pytest.ini says what they mean


@pytest.fixture(autouse=True)
def home(monkeypatch):
    """Each test has keys of its own, and its processes share one: links by TCP between them are encrypted and trusted."""
    directory = tempfile.mkdtemp(prefix="threechains-home-")
    made = Home(directory)
    monkeypatch.setenv("THREECHAINS_HOME", directory)
    yield made
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def t(home):
    """A directory, processes and network namespaces that end with the test."""
    workspace = Workspace(home)
    yield workspace
    workspace.close()


@pytest.fixture(autouse=True)
def leaks_of_unfreed_programs_are_ignored(request, monkeypatch):
    if request.node.get_closest_marker("unfreed"):
        monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")


def pytest_addoption(parser):
    parser.addoption("--list-cases", action="store_true", help="only names the cases, for CMake")
    parser.addoption("--riscv64", action="store_true", help="conformance: builds for riscv64 and runs there as well")


def pytest_collection_finish(session):
    """With --list-cases, a line for each case: its file, its name, its labels, and `limit=SECONDS` if it has its own."""
    if not session.config.getoption("--list-cases"):
        return
    for item in session.items:
        labels = [label for label in LABELS if item.get_closest_marker(label)]
        limit = item.get_closest_marker("limit")
        print("CASE", item.path, item.name, *labels, *([f"limit={limit.args[0]}"] if limit else []))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A test that failed shows what its processes have said."""
    report = (yield).get_result()
    workspace = getattr(item, "funcargs", {}).get("t")
    if report.when != "call" or not report.failed or workspace is None:
        return
    for process in workspace.processes:
        report.sections.append((f"process {process.pid}: stdout", process.out[-3000:]))
        report.sections.append((f"process {process.pid}: stderr", process.err[-6000:]))
