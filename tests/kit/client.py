# SPDX-License-Identifier: Apache-2.0
"""A program with a node of its own that a test talks to for as long as it likes."""

import os
import pathlib
import subprocess
import tempfile
import threading

import pytest

from .build import CLIENT
from .process import ENDS_WITH_US, Process


class Client:
    """tests/integration/client.c, by its line protocol."""

    def __init__(self, t, env, *settings, prefix=()):
        if not os.path.exists(CLIENT):
            pytest.skip("tc_test_client is not built")
        self.err_path = os.path.join(tempfile.mkdtemp(dir=t.directory), "client.err")
        with open(self.err_path, "wb") as err:
            self.process = subprocess.Popen([*ENDS_WITH_US, *prefix, CLIENT, *settings], stdin=subprocess.PIPE, stderr=err,
                                            stdout=subprocess.PIPE, text=True, bufsize=1, env={**os.environ, **env})
        self.pid = self.process.pid
        t.cleanups.append(self.end)

    @property
    def err(self):
        return pathlib.Path(self.err_path).read_text(errors="replace")

    running, memory_kib = Process.running, Process.memory_kib

    def end(self):
        self.process.kill()
        self.process.wait()

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self, seconds=60.0):
        timer = threading.Timer(seconds, self.process.kill)  # readline has no deadline of its own
        timer.start()
        line = self.process.stdout.readline().rstrip("\n")
        timer.cancel()
        assert line, f"the client gave no answer within {seconds} s, or died: {self.process.poll()}\n{self.err}"
        return line

    def ask(self, line, seconds=60.0):
        self.tell(line)
        return self.answer(seconds)

    def must(self, line, seconds=60.0):
        answer = self.ask(line, seconds)
        assert answer.startswith("ok"), f"{line}: {answer}"
        return answer
