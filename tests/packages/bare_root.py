# SPDX-License-Identifier: Apache-2.0
"""A machine with nothing on it: a folder that debootstrap fills (some minutes, once), in which commands run by chroot, as root."""

import os
import shutil
import subprocess

import pytest

import kit


class BareRoot:
    def __init__(self, name, *packages):
        """Debian's smallest system with `packages`, in build/NAME."""
        self.path = kit.ROOT / "build" / name
        if os.geteuid() != 0:
            pytest.skip("chroot needs root")
        if not (self.path / "complete").exists():
            if not shutil.which("debootstrap"):
                pytest.skip("debootstrap is not installed")
            shutil.rmtree(self.path, ignore_errors=True)
            done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", "bookworm", str(self.path)],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-2000:]
            (self.path / "complete").touch()
        shutil.rmtree(self.path / "work", ignore_errors=True)
        (self.path / "work").mkdir()

    def run(self, *command, seconds=120, env={}):
        """Runs a command inside; /tmp is new each time. What it printed."""
        mounts = (f"mount -t proc proc {self.path}/proc; mount --rbind /dev {self.path}/dev; mount --rbind /sys {self.path}/sys; "
                  f"mount -t tmpfs tmp {self.path}/tmp")
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", f'{mounts}; exec chroot {self.path} "$@"', "sh",
                 "/usr/bin/env", "-i", "PATH=/env/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                 *(f"{name}={value}" for name, value in env.items()), *command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def write(self, name, text):
        """Writes /work/NAME; returns that path."""
        (self.path / "work" / name).write_text(text)
        return f"/work/{name}"
