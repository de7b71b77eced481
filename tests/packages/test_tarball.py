# SPDX-License-Identifier: Apache-2.0
"""The small node's tarballs, unpacked anywhere, on each kind of processor: `scripts/test tarball` makes them and runs this."""

import subprocess
import tarfile

import pytest

import kit

TARBALLS = {file.name.split("-small-")[1].removesuffix(".tar.gz"): file
            for file in sorted((kit.ROOT / "dist").glob("threechains-*-small-*.tar.gz"))}

pytestmark = pytest.mark.skipif(not TARBALLS, reason="there are no tarballs in dist/ (make tarball)")


@pytest.fixture(params=["x86_64", "aarch64", "riscv64"])
def machine(request, tmp_path):
    """A kind of processor, on which `ifunc` is the one of the tarball."""
    arch = request.param
    if arch not in TARBALLS:
        pytest.skip(f"there is no tarball for {arch}")
    with tarfile.open(TARBALLS[arch]) as archive:
        archive.extractall(tmp_path)
    folder, = tmp_path.iterdir()
    return kit.Machine.running(arch, folder / "bin/ifunc")


def test_a_node_of_the_tarball_runs_machine_code_over_an_encrypted_connection(t, machine):
    hello = t.build(kit.ROOT / "examples/02-hello/hello.c", *(f"--target={arch}-linux-gnu" for arch in sorted({"x86_64", machine.name})))
    node = t.serve("--listen", "127.0.0.1:0", env=kit.TCP, machine=machine)
    result = t.ifunc("send", hello, node.address, "--payload", "world", env=kit.TCP)
    assert (result.code, result.out) == (0, "Hello, world, from node 0"), result


def test_it_says_what_it_is_and_carries_the_licences(machine, tmp_path):
    said = subprocess.run([*machine.command, "--version"], capture_output=True, text=True, check=True).stdout
    folder, = tmp_path.iterdir()
    assert said.split()[1] in folder.name
    licences = (folder / "licences.txt").read_text()
    for library in ("zstd", "sodium", "fmt", "CLI11"):
        assert library.lower() in licences.lower(), library
