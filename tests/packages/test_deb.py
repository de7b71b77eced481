# SPDX-License-Identifier: Apache-2.0
"""Debian's packages in a clean Debian: `scripts/test deb` builds them and runs this, as root. apt fetches what they depend on."""

import shutil
import subprocess

import pytest

import kit
from bare_root import BareRoot

PACKAGES = sorted((kit.ROOT / "dist").glob("*threechains*.deb"))
NAMES = ("threechains", "threechains-jit", "threechains-hpc", "threechains-dev", "python3-threechains")

pytestmark = pytest.mark.skipif(not PACKAGES, reason="there are no packages in dist/ (make deb)")


@pytest.fixture(scope="module")
def machine():
    """A Debian with the certificates and the sources of packages that this machine has, and ours in /work."""
    bare = BareRoot("debian-root", "ca-certificates")
    shutil.copytree("/etc/apt", bare.path / "etc/apt", dirs_exist_ok=True)
    shutil.copytree("/usr/share/keyrings", bare.path / "usr/share/keyrings", dirs_exist_ok=True)
    for file in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"):
        shutil.copy(file, f"{bare.path}{file}")
    for package in PACKAGES:
        shutil.copy(package, bare.path / "work")
    bare.run("sh", "-c", "apt-get -qq -y purge '*threechains*' >/dev/null 2>&1; apt-get -qq -y autoremove --purge >/dev/null")
    bare.run("apt-get", "-qq", "update", seconds=300)
    return bare


def install(machine, *names):
    files = [f"/work/{file.name}" for file in PACKAGES if file.name.split("_")[0] in names]
    assert len(files) == len(names), files
    machine.run("apt-get", "-qq", "-y", "--no-install-recommends", "-o", "DPkg::Use-Pty=0", "install", *files, seconds=900,
                env={"DEBIAN_FRONTEND": "noninteractive"})


def test_lintian_finds_no_error():
    done = subprocess.run(["lintian", "--fail-on", "error", "--no-tag-display-limit", *map(str, PACKAGES)], capture_output=True,
                          text=True, check=False)
    print("\n".join(line for line in done.stdout.splitlines() if line.startswith(("E:", "W:"))))
    assert done.returncode == 0


def test_the_runtime_alone_serves_and_needs_no_llvm_and_no_ucx(machine):
    install(machine, "threechains")
    machine.run("ifunc", "--version")
    assert not list((machine.path / "usr/lib").rglob("libLLVM*")) and not list((machine.path / "usr/lib").rglob("libucp*"))
    said = machine.run("sh", "-c", "ifunc serve --listen 127.0.0.1:7001 >/work/ready & sleep 2; cat /work/ready; kill $!")
    assert said == "ready 127.0.0.1:7001\n"


def test_the_runtime_has_a_unit_for_its_program(machine):
    unit = (machine.path / "usr/lib/systemd/system/threechains.service").read_text()
    assert "\nExecStart=/usr/bin/ifunc serve " in unit


def test_licences_of_what_is_inside_travel_along(machine):
    words = (machine.path / "usr/share/doc/threechains/third-party-licences.txt").read_text()
    assert all(f"= {package} =" in words for package in ("libcli11-dev", "nlohmann-json3-dev", "libfmt-dev"))


def test_manual_pages_and_completion_are_where_debian_has_them(machine):
    for file in ("man/man1/ifunc.1.gz", "man/man1/ifunc-serve.1.gz", "bash-completion/completions/ifunc"):
        assert (machine.path / "usr/share" / file).exists(), file


def test_an_ifunc_is_built_and_answers(machine):
    install(machine, *NAMES[:4])
    shutil.copy(kit.ROOT / "examples/02-hello/hello.c", machine.path / "work/hello.c")
    script = machine.write("commands.sh", """set -e
cd /work
ifunc build hello.c
ifunc serve --no-object --listen 127.0.0.1:7002 >ready &
until grep -q ready ready; do sleep 0.05; done
ifunc send hello.ifunc 127.0.0.1:7002 --payload world
kill $!
ifunc bench --help >/dev/null
""")
    assert "Hello, world, from node 0" in machine.run("sh", script)


def test_the_systems_python_has_the_package(machine):
    install(machine, *NAMES)
    program = machine.write("first.py", """
import threechains as tc
hello = tc.ifunc.load("/work/hello.ifunc")
with tc.LocalCluster(2) as cluster:
    print(cluster.submit(hello, b"python", node=1).result().text())
""")
    assert machine.run("/usr/bin/python3", program) == "Hello, python, from node 1\n"
    assert machine.run("/usr/bin/python3", "-m", "threechains", "--prefix").strip() == "/usr"


def test_a_program_in_c_is_built_by_cmake_and_pkg_config_names(machine):
    install(machine, *NAMES)
    for file in ("include/threechains/threechains.h", "lib/x86_64-linux-gnu/cmake/ThreeChains/ThreeChainsConfig.cmake",
                 "lib/x86_64-linux-gnu/pkgconfig/threechains.pc", "lib/x86_64-linux-gnu/libthreechains.so"):
        assert (machine.path / "usr" / file).exists(), file


def test_removing_them_leaves_nothing(machine):
    install(machine, *NAMES)
    machine.run("apt-get", "-qq", "-y", "purge", *NAMES, seconds=300)
    left = [path for path in (machine.path / "usr").rglob("*threechains*")]
    assert not left, left
