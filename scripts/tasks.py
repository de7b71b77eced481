# SPDX-License-Identifier: Apache-2.0
"""What scripts/build, scripts/test and scripts/fuzz share: running long commands with short logs."""

import os
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
HEARTBEAT_S = 30  # a CI that sees nothing for long thinks that we hang
TAIL_LINES = 80

building = defaultdict(threading.Lock)  # presets; one at a time may configure and build in a folder
ends_at = float("inf")  # on the clock time.monotonic(): when no command may run any longer


class OutOfTime(Exception):
    """A command was ended at `ends_at`."""


def say(text):
    print(text, flush=True)


def tail(text, lines=TAIL_LINES):
    rows = text.rstrip().splitlines()
    cut = [f"  … {len(rows) - lines} lines before, see the log"] if len(rows) > lines else []
    return "\n".join(cut + ["  " + row for row in rows[-lines:]])


def run_logged(label, command, log, env=None):
    """Runs `command` with its output in the file `log` and a line now and then. Returns its exit status."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env=env)
        started = told = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(0.05 if time.monotonic() - started < 2 else 0.5)
                if time.monotonic() - told >= HEARTBEAT_S:
                    told = time.monotonic()
                    say(f"  {label}: {told - started:.0f} s, {last_line(log)}")
                if time.monotonic() > ends_at:
                    raise OutOfTime(f"{label}: {last_line(log)}")
        except BaseException:
            process.terminate()
            process.wait()
            raise
    return process.returncode


def last_line(log):
    with open(log, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 2000))
        rows = file.read().decode(errors="replace").split("\n")
    rows = [row.strip() for row in rows if row.strip()]
    return rows[-1][:100] if rows else "…"


def build(preset, targets=()):
    """Configures and builds a preset. Returns None, or the words of the failure."""
    with building[preset]:
        return _build(preset, targets)


def _build(preset, targets):
    started = time.monotonic()
    directory = BUILD / preset
    log = directory / "configure.log"
    if run_logged(f"{preset} configure", ["cmake", "--preset", preset], log) != 0:
        return f"configuring {preset} failed ({log.relative_to(ROOT)})\n{tail(errors_of(log.read_text(errors='replace')))}"
    command = ["cmake", "--build", "--preset", preset]
    if targets:
        command += ["--target", *targets]
    log = directory / "build.log"
    if run_logged(f"{preset} build", command, log) != 0:
        return f"building {preset} failed ({log.relative_to(ROOT)})\n{tail(errors_of(log.read_text(errors='replace')))}"
    say(f"{preset}: built in {time.monotonic() - started:.0f} s")
    return None


def errors_of(text):
    """What CMake or ninja prints from its first error on: the progress lines before it say nothing."""
    found = re.search(r"^(FAILED:|CMake Error|ninja: error)", text, re.M)
    if not found:
        return text
    rows = text[found.start():].splitlines()
    return "\n".join(row for row in rows if not re.match(r"\[\d+/\d+\] ", row))[:12000]


def python_with_pytest():
    """The system's Python, which has the package python3-pytest; CMake takes the same one."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def fail(text):
    print(text, file=sys.stderr, flush=True)
    sys.exit(1)
