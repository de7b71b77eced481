# SPDX-License-Identifier: Apache-2.0
"""The build that is tested, and the processors that its programs run on."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TC_BUILD_DIR", ROOT / "build/release")).resolve()
IFUNC = str(BUILD / "bin/ifunc")
CLIENT = str(BUILD / "bin/tc_test_client")
MEMBER = str(BUILD / "bin/tc_test_member")
IFUNC_SOURCES = ROOT / "tests/ifuncs"
SHM = {"TC_TRANSPORT": "shm"}
TCP = {"TC_TRANSPORT": "tcp"}
# For nodes with transport=ucx, and for programs that use UCX themselves. On shared memory, tcp carries the wire-up.
UCX_SHM = {"UCX_TLS": "posix,self,tcp", "UCX_NET_DEVICES": "lo"}
UCX_TCP = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}


class Machine:
    """A kind of processor that nodes and commands of a test run on: this one, or an emulated one."""

    def __init__(self, name, command):
        self.name, self.command = name, command  # the command: `ifunc` there

    @staticmethod
    def native():
        return Machine(os.uname().machine, [IFUNC])

    @staticmethod
    def other(name):
        """`aarch64` or `riscv64`: what the preset of that name built, under qemu. Skips when something is missing."""
        if name == os.uname().machine:
            return Machine.native()
        program = BUILD.parent / name / "bin/ifunc"
        if not program.exists():
            pytest.skip(f"there is no build for {name}; `scripts/test mixed` makes it (docs/heterogeneous.md)")
        return Machine.running(name, program)

    @staticmethod
    def running(name, program):
        """This `ifunc` of any of those processors. Skips when the emulator is missing."""
        if name == os.uname().machine:
            return Machine(name, [str(program)])
        qemu = shutil.which(f"qemu-{name}-static")
        if qemu is None:
            pytest.skip(f"qemu-{name}-static (qemu-user-static) is not installed")
        found = subprocess.run([ROOT / "scripts/sysroot", name, "--cached"], capture_output=True, text=True, check=False)
        if found.returncode != 0:
            pytest.skip(found.stderr.strip())
        return Machine(name, [qemu, "-L", found.stdout.strip(), str(program)])
