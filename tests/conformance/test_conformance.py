# SPDX-License-Identifier: Apache-2.0
"""The same ten ifuncs in every language, built for both architectures, run at nodes that have no language installed. And for some
languages one more, which does what few ifuncs do: `hard.c`, `hard.rs`, ...

    python3 -m pytest tests/conformance               all languages
    python3 -m pytest tests/conformance -k rust       one of them; skipped, with the reason, when its compiler is missing
    python3 -m pytest tests/conformance --riscv64     for riscv64 as well, and at an emulated node of that kind

A language is a folder here, with one file for each ifunc: `dot.c`, `dot.rs`, ... Any suffix that `ifunc build` knows
will do; another language is another folder. Nodes run in two ways: the ready machine code, and the bitcode compiled
there. The cases `emulated` need a build for aarch64 and qemu (docs/heterogeneous.md): `scripts/test mixed` has both.
"""

import math
import os
import pathlib
import shutil
import struct

import pytest

import kit

HERE = pathlib.Path(__file__).resolve().parent
COMPILERS = {"rust": ("TC_RUSTC", "rustc"), "julia": ("TC_JULIA", "julia"), "python": ("TC_PYTHON", "python3")}
STEPS = {"julia": "; `scripts/test julia` runs this", "python": "; `scripts/test python` runs this"}
TEXT = b"she sells sea shells by the sea shore"
TABLE = [(7 * i + 3) % 64 for i in range(64)]  # one cycle through all
VECTORS = [0.5 * i for i in range(100)] + [float(i % 7) for i in range(100)]


def chased(at, steps):
    for _ in range(steps):
        at = TABLE[at]
    return at


def dot(values):
    half = len(values) // 2
    return sum(a * b for a, b in zip(values[:half], values[half:]))


# ifunc: [(payload, the reply, or the words of its failure)], in this order at each node.
CASES = {
    "increment": [(struct.pack("<Q", 5), struct.pack("<Q", 5)), (struct.pack("<Q", 2**40), struct.pack("<Q", 5 + 2**40)),
                  (b"xy", "failed with code 1: no counter, or no number")],
    "chase": [(struct.pack("<QQ", 5, 40), struct.pack("<Q", chased(5, 40))), (struct.pack("<QQ", 9, 0), struct.pack("<Q", 9))],
    "dot": [(struct.pack("<200d", *VECTORS), struct.pack("<d", dot(VECTORS))), (b"", struct.pack("<d", 0))],
    "search": [(b"sea", struct.pack("<Q", 10)), (b"shore", struct.pack("<Q", 32)), (b"moon", struct.pack("<Q", 2**64 - 1))],
    "structure": [(struct.pack("<IhBxd", 40, -3, 7, 2.5), struct.pack("<dq", 100.0, 30))],
    "reply": [(b"abc", b"cba"), (b"", b""), (bytes(range(200)), bytes(reversed(range(200))))],
    "forward": [(b"?ab", b"1ab")],
    "fail": [(b"", "failed with code 42: no such luck")],
    "named_data": [(b"", struct.pack("<QQ", len(TEXT), 0))],
    "library": [(struct.pack("<dd", 3, 4), struct.pack("<d", 5))],
}


M64 = 2**64 - 1


def hard_in_c(a, b, calls):
    product, z = a * b * 1000000007 & (2**128 - 1), complex(a, 2)
    z = z * z * (1 + 1j) / 2
    value = 5
    while value < 1000:
        value *= 2
    value += 1
    return [calls, 1, int((3 + 2.5 * a + 5 + 0.5) * 4), value, product >> 64, product // (b | 1) % 1000003,
            int(z.real) & M64, int(z.imag) & M64, int(20 * a - 6), (a * 3 + (b * 3 + 1) * 2 + 5 * 3 + 6) & M64, a + 3, 2,
            (7 + 2) % 8 * 1000000 + (-5 - a % 100 + 1000) + b % 2**40, 5 + a, int((a % 500 * 2 + 0.5) * 4), 2 * b + 2]


def hard_in_cpp(a, b, calls):
    numbers = sorted(range(a, a + b % 50 + 3), key=lambda n: (n % 7, -n))
    text = "an ifunc" + "x" * (b % 30 + 1)
    return [calls, FIRST[0] + 1, 17, 23, numbers[0] * 1000 + numbers[-1], a * a + 25, 102334155,
            a + sum(range(b % 20 + 1)), 202, 17, len(text) * 100 + 7, sum(text.encode())]


def hard_in_rust(a, b, calls):
    product = a * b * 1000000007
    ways = [1, 1]
    while len(ways) < 20:
        ways.append(ways[-1] + ways[-2])
    numbers = sorted((math.fmod(i * 7 + a, 16) - 8 for i in range(16)), key=lambda n: (abs(n), n))
    folded = 0
    for number in numbers:
        folded = (folded * 31 + int(number)) & M64
    rotated = (b << 8 | b >> 56) & M64
    return [calls, product >> 64 & M64, product // (b | 1) % 1000003, a * a + 14, a * 3 + 4, ways[b % 20], folded,
            M64, a // 2, rotated ^ a, sum(struct.unpack("<4I", struct.pack("<QQ", a, b))), 45]


def hard_in_python(a, b, calls):
    ways = [1, 1]
    while len(ways) < 15:
        ways.append(ways[-1] + ways[-2])
    total, n = 0.0, 0
    while n <= b % 50 or n % 3 == 0:
        n += 1
        total += math.sqrt(n) if n % 3 else 0
    numbers = [a, b]
    return [-7 // 2 * 100 + -7 % 3 + a % -5 * 10, b, b * 3 + a, numbers.index(min(a, b)) * 1000 + min(a, b),
            math.floor(total * 1000), ways[b % 15], (a + 128) % 256 - 128 + 100, int(a * 0.5), (a << 5) ^ (b >> 2), 2]


HARD = {"c": hard_in_c, "cpp": hard_in_cpp, "rust": hard_in_rust, "python": hard_in_python}
# In this order at each node. Small enough for a float to hold what is computed with them.
FIRST, *OTHERS = PAIRS = [(12, 345678901), (3, 17), (999, 2**30 + 3), (7, 0), (64, 49)]


def languages():
    return sorted(path.name for path in HERE.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))


def source_of(language, name):
    found = [path for path in (HERE / language).glob(name + ".*") if path.suffix != ".deps"]
    assert len(found) == 1, f"{language} has no {name}, or several: {found}"
    return found[0]


def build(t, language, name, triples):
    variable, program = COMPILERS.get(language, ("TC_CLANG", None))
    if program and variable not in os.environ and shutil.which(program) is None:
        pytest.skip(f"there is no {program}{STEPS.get(language, '')}")
    out = t.path(f"{language}-{name}.ifunc")
    targets = [word for triple in triples for word in ("--target", triple)]
    result = t.ifunc("build", str(source_of(language, name)), "-o", out, *targets, seconds=120)
    # A step that brings the compiler names it: there it must work.
    if result.code != 0 and " above)" in result.err and language in COMPILERS and variable not in os.environ:
        lines = result.err.strip().splitlines()
        if any("E0463" in line or "No module named" in line or "not found in current path" in line or
               "needs Numba" in line for line in lines):
            pytest.skip(lines[-1] + STEPS.get(language, ""))
    assert result.code == 0, f"building {name} in {language}: {result}"
    for triple in triples:
        assert triple in result.out, f"{name} in {language} is not for {triple}: {result.out}"
    return out


class Nodes:
    """Two nodes that know each other; the first one is called."""

    def __init__(self, t, label, command, options):
        self.label = label
        self.addresses = kit.free_addresses(2)
        for number, address in enumerate(self.addresses):
            node = t.start(*command, "serve", *options, "--id", str(number), "--cluster", ",".join(self.addresses),
                           "--listen", address, "--data", f"table={t.path('table')}", "--data",
                           f"text={t.path('text')}", "--scratch", "counter=8", "--allow-lib", "libm.so.6", "--allow-lib", "libc.so.6",
                           "--allow-lib", "libstdc++.so.6", "--allow-lib", "libgcc_s.so.1",
                           env=kit.TCP, kind=kit.Node)
            node.wait_until_ready(60)

    def check(self, t, file, payload, expected):
        """None, or what was wrong."""
        payload_file = t.write("payload", payload)
        result = t.ifunc("send", file, self.addresses[0], "--payload-file", payload_file, "--hex-out",
                         "--timeout", "30000", env=kit.TCP, seconds=60)
        if isinstance(expected, str):
            return None if result.code != 0 and expected in result.err else f"expected to be told {expected!r}: {result}"
        if result.code != 0:
            return repr(result)
        return None if result.out.strip() == expected.hex() else f"expected {expected!r}: {result}"


def native(t):
    """The kinds of nodes of this machine's processor."""
    kinds = [Nodes(t, "object", [kit.IFUNC], ["--no-bitcode"])]
    if any((kit.BUILD / "lib").glob("libthreechains_jit.so*")):
        kinds.append(Nodes(t, "bitcode", [kit.IFUNC], ["--no-object"]))
        kinds.append(Nodes(t, "bitcode as it comes", [kit.IFUNC], ["--no-object", "--no-tune"]))
        kinds.append(Nodes(t, "both", [kit.IFUNC], []))
    return kinds


@pytest.fixture(params=["native", pytest.param("emulated", marks=pytest.mark.mixed)])
def where(t, request):
    """The processors that the ifuncs are built for, and what starts the nodes that run them."""
    processors = ["aarch64", "riscv64"] if request.config.getoption("--riscv64") else ["aarch64"]
    t.write("text", TEXT)
    t.write("table", struct.pack("<64Q", *TABLE))
    triples = [f"{processor}-linux-gnu" for processor in ("x86_64", *processors)]
    if request.param == "native":
        return triples, lambda: native(t)
    machines = [kit.Machine.other(processor) for processor in processors]
    return triples, lambda: [Nodes(t, machine.name, machine.command, ["--no-bitcode"]) for machine in machines]


@pytest.mark.parametrize("language", languages())
def test_ten_ifuncs_answer_as_in_c(t, language, where):
    triples, nodes = where
    files = {name: build(t, language, name, triples) for name in CASES}
    wrong = [f"{name} at {one.label}: {found}" for one in nodes() for name, cases in CASES.items()
             if (found := next(filter(None, (one.check(t, files[name], *case) for case in cases)), None))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("language", sorted(HARD))
def test_what_few_ifuncs_do_is_done_right(t, language, where):
    triples, nodes = where
    file = build(t, language, "hard", triples)
    wrong = []
    for node in nodes():
        for calls, (a, b) in enumerate(PAIRS, 1):
            expected = b"".join((word & M64).to_bytes(8, "little") for word in HARD[language](a, b, calls))
            if found := node.check(t, file, struct.pack("<QQ", a, b), expected):
                wrong.append(f"{a}, {b} at {node.label}: {found}")
    assert not wrong, "\n".join(wrong)
