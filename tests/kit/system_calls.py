# SPDX-License-Identifier: Apache-2.0
"""Runs a command with the system calls alone that a systemd unit allows, as systemd would: others fail with EPERM.

    python3 tests/kit/system_calls.py UNIT COMMAND [ARGUMENTS...]
"""

import ctypes
import errno
import os
import pathlib
import re
import struct
import subprocess
import sys

_NUMBERS = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
_AUDIT_ARCH_X86_64 = 0xC000003E
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


def can_be_used():
    return os.uname().machine == "x86_64" and _NUMBERS.exists()


def _groups():
    """What each of systemd's groups has, as `systemd-analyze syscall-filter` lists them."""
    groups, name = {}, None
    listed = subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True).stdout
    for line in map(str.rstrip, listed.splitlines()):
        if line.startswith("@"):
            groups[name := line] = []
        elif name and line.strip() and not line.strip().startswith("#"):
            groups[name].append(line.strip())
    return groups


def allowed(unit):
    """The names of the system calls that the lines SystemCallFilter= of a unit allow together."""
    groups, names = _groups(), set()

    def expand(word):
        return {call for member in groups[word] for call in expand(member)} if word.startswith("@") else {word}

    for line in re.findall(r"^SystemCallFilter=(.*)$", pathlib.Path(unit).read_text(), re.MULTILINE):
        calls = {call for word in line.lstrip("~").split() for call in expand(word)}
        names = names - calls if line.startswith("~") else names | calls
    return names


def restrict(names):
    """From now on, this process and its children may make these system calls alone."""
    known = dict(re.findall(r"^#define __NR_(\w+) (\d+)$", _NUMBERS.read_text(), re.MULTILINE))
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _AUDIT_ARCH_X86_64), (_RETURN, 0, 0, _ERRNO | errno.EPERM), (_LOAD, 0, 0, 0)]
    for name in sorted(names & known.keys()):
        program += [(_EQUAL, 0, 1, int(known[name])), (_RETURN, 0, 0, _ALLOW)]
    program.append((_RETURN, 0, 0, _ERRNO | errno.EPERM))
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
    fprog = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(instructions)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, fprog, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot restrict system calls")


if __name__ == "__main__":
    restrict(allowed(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
