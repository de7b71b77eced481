# SPDX-License-Identifier: Apache-2.0
"""The wheel of `make wheel` on a machine that has Python and nothing else: `scripts/test wheel` builds it and runs this, as root.

What pip needs is fetched before, so that the time from the wheel to the first answer is ours.
"""

import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

import kit
from bare_root import BareRoot

FETCHED = kit.ROOT / "build/wheels-fetched"
WHEELS = sorted((kit.ROOT / "dist").glob("threechains-*.whl"))

pytestmark = pytest.mark.skipif(not WHEELS, reason="there is no wheel in dist/ (make wheel)")

# Symbols of an LLVM without versions, as TensorFlow and Triton bring them. Whoever called one would end.
FOREIGN = """
#include <stdlib.h>
void _ZN4llvm2cl6Option11addArgumentEv(void) { abort(); }
void _ZN4llvm2cl22ParseCommandLineOptionsEiPKPKcNS_9StringRefEPNS_11raw_ostreamEPNS_3vfs10FileSystemES3_b(void) { abort(); }
void LLVMInitializeX86Target(void) { abort(); }
void LLVMInitializeX86TargetInfo(void) { abort(); }
void LLVMContextCreate(void) { abort(); }
void _ZN4llvm11LLVMContextC1Ev(void) { abort(); }
"""

COMPILES = """
import threechains as tc
hello = tc.ifunc.from_c('''
#include <threechains/ifunc.h>
void hello_main(void *payload, size_t size, void *target_args) { (void)target_args; tc_reply(payload, size); }
''')
with tc.Node(objects=False) as node, tc.Cluster([node.address]) as client:
    print(client.submit(hello, b"compiled").result().text())
"""


@pytest.fixture(scope="module")
def machine():
    """The bare machine, with what pip would fetch in /wheels and our wheel in no environment yet."""
    bare = BareRoot("bare-root", "python3", "python3-venv")
    if not all(list(FETCHED.glob(name)) for name in ("numba-*", "ziglang-*", "libucx_cu12-*")):
        subprocess.run(["python3", "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(FETCHED),
                        "--python-version=3.11", "numba==0.68.*", "ziglang==0.17.*", "libucx-cu12>=1.15"], check=True)
    for folder in ("wheels", "env", "with-zig"):
        shutil.rmtree(bare.path / folder, ignore_errors=True)
    shutil.copytree(FETCHED, bare.path / "wheels")
    for wheel in WHEELS:
        shutil.copy(wheel, bare.path / "wheels")
    return bare


@pytest.fixture(scope="module")
def first_answer(machine):
    """Installs the wheel in a new environment and runs the tutorial. The seconds that it took, what it printed and should."""
    text = (kit.ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.M | re.S)
    tutorial = machine.write("tutorial.py", "\n".join(block for block, _ in blocks))
    started = time.monotonic()
    machine.run("python3", "-m", "venv", "/env")
    machine.run("/env/bin/pip", "install", "--quiet", "--no-index", "--find-links=/wheels", "threechains[numba]")
    installed = time.monotonic()
    printed = machine.run("/env/bin/python", tutorial)
    return installed - started, time.monotonic() - installed, printed, "".join(shown for _, shown in blocks)


def test_the_machine_has_no_compiler_and_no_llvm(machine):
    for program in ("cc", "gcc", "clang", "clang-22", "ld", "ld.lld", "zig"):
        assert not any((machine.path / folder / program).exists() for folder in ("usr/bin", "usr/local/bin")), program
    assert not list((machine.path / "usr/lib").rglob("libLLVM*")) and not list((machine.path / "usr/lib").rglob("libucp*"))
    assert not (machine.path / "usr/include/stdio.h").exists()


def test_the_tutorial_runs_in_an_empty_environment(machine, first_answer):
    install, run, printed, should = first_answer
    print(f"from the wheel to the environment: {install:.1f} s; the tutorial: {run:.1f} s")
    assert printed == should


def test_the_command_builds_serves_and_sends(machine, first_answer):
    shutil.copy(kit.ROOT / "examples/02-hello/hello.c", machine.path / "work/hello.c")
    script = machine.write("commands.sh", """set -e
cd /work
ifunc build hello.c
ifunc inspect --asm hello.ifunc | grep ifunc_main
ifunc serve --listen 127.0.0.1:7001 >ready &
until grep -q ready ready; do sleep 0.05; done
ifunc send hello.ifunc 127.0.0.1:7001 --payload world
kill $!
""")
    assert "Hello, world, from node 0" in machine.run("sh", script)


def test_the_processors_intrinsics_need_no_headers_of_the_system(machine, first_answer):
    machine.write("intrinsics.c", """#include <threechains/ifunc.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
void intrinsics_main(void *payload, size_t size, void *target_args) { (void)target_args; tc_reply(payload, size); }
""")
    machine.run("sh", "-c", "cd /work && ifunc build intrinsics.c -- -ffreestanding")


def test_missing_headers_of_the_system_are_said_and_zig_brings_them(machine, first_answer):
    source = """#include <stdio.h>
#include <string.h>
#include <threechains/ifunc.h>
void words_main(void *payload, size_t size, void *target_args) {
  (void)target_args;
  char text[64];
  tc_reply(text, (size_t)snprintf(text, sizeof text, "%zu of %zu", strnlen(payload, size), size));
}
"""
    machine.write("words.c", source)
    machine.write("words.deps", "c\n")
    said = machine.run("sh", "-c", "cd /work && ! ifunc build words.c 2>&1")
    assert "libc6-dev" in said and "ziglang" in said, said
    machine.run("python3", "-m", "venv", "/with-zig")
    machine.run("/with-zig/bin/pip", "install", "--quiet", "--no-index", "--find-links=/wheels", "threechains[ziglang]")
    machine.run("sh", "-c", "cd /work && /with-zig/bin/ifunc build words.c", seconds=300)


def test_without_ucx_it_is_said_how_to_get_one_and_the_extra_brings_one(machine, first_answer):
    script = machine.write("ucx.sh", """set -e
cd /work
export TC_TRANSPORT=ucx UCX_TLS=tcp UCX_NET_DEVICES=lo
ifunc serve --listen 127.0.0.1:7003 --trust-network 127.0.0.0/8 >ucx-ready &
node=$!
until grep -q ready ucx-ready; do kill -0 $node; sleep 0.05; done
ifunc send hello.ifunc 127.0.0.1:7003 --trust-network 127.0.0.0/8 --payload ucx
kill $node
""")
    said = machine.run("sh", "-c", "! ifunc serve --listen 127.0.0.1:7003 --transport ucx 2>&1")
    assert "libucx0" in said and "libucx-cu12" in said, said
    machine.run("/env/bin/pip", "install", "--quiet", "--no-index", "--find-links=/wheels", "threechains[ucx]")
    try:
        assert "Hello, ucx, from node 0" in machine.run("sh", script)
    finally:
        machine.run("/env/bin/pip", "uninstall", "--quiet", "--yes", "libucx-cu12")


def test_another_installation_on_the_loaders_path_is_not_loaded(machine, first_answer):
    """As in a shell that was set up for a build from source: here that one's library cannot even be loaded."""
    machine.write("libthreechains.so.0", "no library")
    set_up = {"LD_LIBRARY_PATH": "/work"}
    machine.run("ifunc", "--version", env=set_up)
    machine.run("/env/bin/python", "-c", "import threechains", env=set_up)
    machine.run("ifunc", "build", "/work/hello.c", "-o", "/work/again.ifunc", env=set_up)


@pytest.mark.parametrize("order", ["before", "after"])
def test_another_llvm_in_the_process_disturbs_nobody(machine, first_answer, order):
    foreign = machine.path / "work/libforeign.so"
    machine.write("foreign.c", FOREIGN)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(foreign), str(machine.path / "work/foreign.c")], check=True)
    load = "import ctypes; ctypes.CDLL('/work/libforeign.so', mode=ctypes.RTLD_GLOBAL)\n"
    program = machine.write(f"{order}.py", load + COMPILES if order == "before" else "import threechains\n" + load + COMPILES + load + COMPILES)
    assert set(machine.run("/env/bin/python", program).split()) == {"compiled"}


def test_a_program_in_c_links_the_library_of_the_wheel(machine, first_answer, tmp_path):
    prefix = pathlib.Path(f"{machine.path}{machine.run('/env/bin/python', '-m', 'threechains', '--prefix').strip()}")
    shutil.copytree(kit.ROOT / "tests/install/project", tmp_path / "project")
    build = tmp_path / "build"
    subprocess.run(["cmake", "-S", str(tmp_path / "project"), "-B", str(build), f"-DCMAKE_PREFIX_PATH={prefix}"], check=True)
    subprocess.run(["cmake", "--build", str(build)], check=True)
    subprocess.run([str(build / "greet_c"), str(build / "ifuncs")], check=True)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "threechains"], capture_output=True, text=True, check=True,
                           env=dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))).stdout.split()
    subprocess.run(["cc", str(tmp_path / "project/greet_c.c"), "-o", str(tmp_path / "greet"), *flags], check=True)
    subprocess.run([str(tmp_path / "greet"), str(build / "ifuncs")], check=True,
                   env=dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib")))


def test_help_is_quick(machine, first_answer):
    timed = """
import subprocess, time
def once():
    started = time.perf_counter(); subprocess.run(['ifunc', '--help'], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started
print(f'ifunc --help: {1000 * sorted(once() for _ in range(21))[10]:.1f} ms')
"""
    print(machine.run("/env/bin/python", "-c", timed))
