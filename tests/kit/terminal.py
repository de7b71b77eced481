# SPDX-License-Identifier: Apache-2.0
"""A terminal that a test looks at and types into: tmux, with a server of the test's own that ends with it."""

import os
import shutil

import pytest

from .process import run, run_until


class Terminal:
    """Runs `script` in bash. `env` is what it has besides ours."""

    def __init__(self, t, script, env={}, width=80, height=24):
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        self.socket = t.path("tmux")
        # -D: no daemon, which would outlive a test that is killed.
        self.server = t.start("tmux", "-D", "-u", "-f", "/dev/null", "-S", self.socket, env={"LC_ALL": "C.UTF-8", "TMUX": None, **env})
        run_until(lambda: os.path.exists(self.socket) and self.ask("start-server").code == 0, "tmux is there")
        self.tmux("set-option", "-g", "default-terminal", "screen-256color")
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), "bash", "--norc", t.write("script.sh", script))

    def ask(self, *arguments):
        return run("tmux", "-u", "-S", self.socket, *arguments)

    def tmux(self, *arguments):
        result = self.ask(*arguments)
        assert result.code == 0, (arguments, result)
        return result.out

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def wait_for(self, condition, what):
        """Until condition(screen) holds; what it gave."""
        try:
            return run_until(lambda: condition(self.screen()), what)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n{self.screen()}") from None
