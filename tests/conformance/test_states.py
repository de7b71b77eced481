# SPDX-License-Identifier: Apache-2.0
"""What code keeps from one call to the next, and what it leaves behind on its thread, in every form in which a node runs code:
ready machine code, bitcode as it comes, compiled for this CPU, exchanged between two calls, and in a cell. The expected answers
are those of the same source, compiled natively with native.c.

    python3 -m pytest tests/conformance/test_states.py
"""

import os
import pathlib
import shutil
import struct
import subprocess

import pytest

import kit
from kit.client import Client

HERE = pathlib.Path(__file__).resolve().parent
PAYLOADS = (1, 2, 3, 4)
# Of these, no two compilations may share the variables, or the constants that have names: addresses of code stand in them
# (docs/code-cache.md). First, as nodes compile in this order: once the others are exchanged, it is decided.
STAY = ["c/labels.c", "c/pointers.c", "c/modes.c", "c/tables.c"]
EXCHANGED = ["c/dispatch.c", "c/callbacks.c", "c/sentinels.c", "c/library_state.c", "cpp/unwinding.cc", "cpp/caught.cc"]
UNWIND = [source for source in EXCHANGED if source.startswith("cpp/")]  # as bitcode alone
EXCEPTIONS = ("--", "-fexceptions")

pytestmark = pytest.mark.skipif(not any((kit.BUILD / "lib").glob("libthreechains_jit.so*")), reason="there is no JIT here")


def compiler(source):
    named = os.environ.get("TC_CLANG")
    clang = named or shutil.which("clang-22") or shutil.which("clang") or pytest.skip("there is no clang")
    return [clang, "-std=c++20", "-fexceptions"] if source.endswith(".cc") else [clang]


class Native:
    """A source, compiled natively."""

    def __init__(self, t, source):
        path = HERE / source
        shim, self.program = t.path(path.stem + ".o"), t.path(path.stem)
        headers = f"-I{kit.ROOT}/include"
        main = f"-DMAIN={path.stem}_main"
        subprocess.run([*compiler("native.c"), headers, main, "-c", HERE / "native.c", "-o", shim], check=True)
        subprocess.run([*compiler(source), "-O2", headers, path, shim, "-o", self.program, "-lm", "-lstdc++"], check=True)

    def answers(self, *payloads):
        """To calls with these numbers, one after the other, in hexadecimal."""
        done = subprocess.run([self.program, *map(str, payloads)], check=True, capture_output=True, text=True)
        return done.stdout.split()


class Form:
    """A node, in a program that tells its numbers."""

    def __init__(self, t, label, *settings):
        self.t, self.label = t, label
        self.node = Client(t, kit.TCP, "listen=127.0.0.1:0", "allow-lib=*", *settings)
        self.node.must("serve")
        self.address = self.node.must("address").split()[1]

    def call(self, file, payload):
        """What a new caller is answered."""
        result = self.t.ifunc("send", file, self.address, "--payload-file", self.t.write("payload", payload), "--hex-out",
                              "--timeout", "30000", env=kit.TCP, seconds=60)
        return result.out.strip() if result.code == 0 else f"{result}\n{self.node.err}"

    def tuned(self):
        return int(self.node.must("stat tuned").split()[1])


@pytest.fixture
def built(t):
    return {source: t.build(HERE / source, *(EXCEPTIONS if source in UNWIND else ())) for source in STAY + EXCHANGED}


def wrong_answers(form, built, expected, sources, calls):
    """Of calls of `sources`. `expected`: what each may answer to each of `calls`."""
    return [f"{source}, call {call} as {form.label}: {answer} and natively {expected[source][call]}"
            for source in sources for call in calls
            if (answer := form.call(built[source], struct.pack("<Q", call))) not in expected[source][call]]


def test_what_code_keeps_between_calls_is_the_same_in_every_form(t, built):
    programs = {source: Native(t, source) for source in built}
    expected = {source: {call: [answer] for call, answer in zip(PAYLOADS, program.answers(*PAYLOADS))}
                for source, program in programs.items()}
    # Each cell has variables of its own: the second call may be the first one there.
    in_a_cell = {source: {1: program.answers(1), 2: [program.answers(1, 2)[1], *program.answers(2)]}
                 for source, program in programs.items()}
    with_object = [source for source in built if source not in UNWIND]
    cache = f"cache-dir={t.path('cache')}"
    wrong = []
    for label, *settings in [("bitcode, tuned later", "objects=off", cache), ("an object, tuned later",)]:
        form = Form(t, label, *settings)
        wrong += wrong_answers(form, built, expected, built, [1, 2])
        kit.run_until(lambda form=form: form.tuned() >= len(EXCHANGED), f"{label}: all that may be exchanged is")
        wrong += wrong_answers(form, built, expected, built, [3, 4])
        assert form.tuned() == len(EXCHANGED), label
    for label, answers, sources, *settings in [
            ("bitcode as it comes", expected, built, "objects=off", "tune=off"),
            ("tuned from the start", expected, built, "objects=off", cache),
            ("an object", expected, with_object, "bitcode=off"),
            ("an object in a cell", in_a_cell, with_object, "bitcode=off", "isolate=all"),
            ("bitcode in a cell", in_a_cell, built, "objects=off", "isolate=all")]:
        wrong += wrong_answers(Form(t, label, *settings), built, answers, sources, [1, 2])
    assert not wrong, "\n".join(wrong)


# Rounding up, down and towards zero, small numbers as zero, and exceptions that raise a signal. With several threads, both
# ifuncs take long enough to go to the same other thread from their second call on.
@pytest.mark.parametrize("settings", [("isolate=none",), ("threads=2",), ("isolate=all", "cells=1")], ids=["node", "thread", "cell"])
@pytest.mark.parametrize("form", ["objects=off", "bitcode=off"])
def test_how_a_thread_computes_is_not_changed_by_the_code_of_others(t, settings, form):
    expected, = Native(t, "c/compute.c").answers(0)
    compute, disturb = (t.build(HERE / f"c/{name}.c") for name in ("compute", "disturb"))
    node = Form(t, form, form, *settings)
    for how in range(-1, 5):
        if how >= 0:
            for _ in range(2):
                assert node.call(disturb, struct.pack("<Q", how)) == struct.pack("<Q", how).hex(), how
        for _ in range(2):
            assert node.call(compute, b"") == expected, how
