# SPDX-License-Identifier: Apache-2.0
"""Installs a build, moves the installed tree, and builds and runs programs against it, as a user outside the tree would."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import kit

HERE = pathlib.Path(__file__).resolve().parent
UCP_EXAMPLES = kit.ROOT / "examples/ucp_ifunc"
STRICT = ["-Wall", "-Wextra", "-Werror"]


def run(*arguments, env={}, seconds=120):
    result = kit.run(*map(str, arguments), env=env, seconds=seconds)
    assert result.code == 0, f"{' '.join(map(str, arguments))}: {result}"
    return result.out


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installed copy at another place than where it was installed to."""
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", kit.BUILD, "--prefix", folder / "first")
    return (folder / "first").rename(folder / "prefix")


@pytest.fixture(scope="module")
def project(prefix, tmp_path_factory):
    """The project of this folder, built by find_package against the installed copy."""
    folder = tmp_path_factory.mktemp("project") / "project"
    shutil.copytree(HERE / "project", folder)
    run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder / "build")
    return folder


def package_config(prefix, name, *options):
    """What pkg-config says; it must know the package."""
    folder = next(prefix.rglob("threechains.pc")).parent
    return run("pkg-config", *options, name, env={"PKG_CONFIG_PATH": str(folder)}).split()


def test_what_a_user_needs_is_installed_and_knows_nothing_of_the_build(prefix):
    for file in ("bin/ifunc", "include/threechains/threechains.h", "include/threechains/threechains.hpp",
                 "include/threechains/ifunc.h", "share/man/man1/ifunc.1", "share/man/man1/ifunc-serve.1",
                 "share/bash-completion/completions/ifunc", "share/zsh/site-functions/_ifunc",
                 "share/fish/vendor_completions.d/ifunc.fish"):
        assert (prefix / file).exists(), f"not installed: {file}"
    assert not (prefix / "include/threechains/.clang-format").exists(), "installed what is ours alone"
    found = subprocess.run(["grep", "-rIl", "--exclude-dir=bin", str(kit.BUILD), str(prefix)], capture_output=True,
                           text=True, check=False).stdout
    assert not found, f"these installed files know where they were built:\n{found}"


def test_the_unit_for_systemd_names_the_program_that_is_installed(tmp_path):
    run("cmake", "--install", kit.BUILD, "--prefix", tmp_path / "here")
    unit = (tmp_path / "here/lib/systemd/system/threechains.service").read_text()
    program = re.search(r"^ExecStart=(\S+) serve ", unit, re.MULTILINE)[1]
    assert program == str(tmp_path / "here/bin/ifunc") and os.access(program, os.X_OK), unit


def is_elf(file):
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def test_everything_that_is_installed_finds_its_libraries_by_itself(prefix):
    here = dict(os.environ)
    here.pop("LD_LIBRARY_PATH", None)
    for file in prefix.rglob("*"):
        if file.is_file() and is_elf(file):
            found = subprocess.run(["ldd", file], env=here, capture_output=True, text=True, check=True).stdout
            assert "not found" not in found, f"{file}:\n{found}"
    run(prefix / "bin/ifunc", "--version")
    if (prefix / "libexec/threechains/ifunc-bench").exists():
        run(prefix / "bin/ifunc", "bench", "--help")


@pytest.mark.parametrize("folder, prefix_of_pc", [("lib", "../.."), ("lib/x86_64-linux-gnu", "../../..")])
def test_libraries_are_found_from_every_folder_wherever_they_are(tmp_path, folder, prefix_of_pc):
    """Only configured: what CMake would write into the files when it installs them."""
    known = dict(re.findall(r"^(CMAKE_C(?:XX)?_COMPILER):[A-Z]+=(.*)$", (kit.BUILD / "CMakeCache.txt").read_text(), re.M))
    run("cmake", "-S", kit.ROOT, "-B", tmp_path, "-G", "Ninja", "-DTC_TESTS=OFF", f"-DCMAKE_INSTALL_LIBDIR={folder}",
        *(f"-D{name}={compiler}" for name, compiler in known.items()))
    scripts = "\n".join(file.read_text() for file in tmp_path.rglob("cmake_install.cmake"))
    written = dict(re.findall(r'FILE "[^"]*PREFIX\}/([^"]*)"\s+RPATH "\\\$ORIGIN([^"]*)"', scripts))
    assert written.pop("bin/ifunc") == f"/../{folder}"
    assert written.pop("libexec/threechains/ifunc-toolchain") == f"/../../{folder}"
    assert written.pop("libexec/threechains/ifunc-bench", f"/../../{folder}") == f"/../../{folder}"
    assert written.pop("libexec/threechains/ifunc-top", f"/../../{folder}") == f"/../../{folder}"
    assert f"{folder}/libthreechains_jit.so" in written
    assert all(name.startswith(folder) and rpath == "" for name, rpath in written.items()), written
    assert f"prefix=${{pcfiledir}}/{prefix_of_pc}\n" in (tmp_path / "threechains.pc").read_text()


def test_a_project_outside_the_tree_uses_an_installed_copy(prefix, project):
    ifuncs = project / "build/ifuncs"
    for program in ("greet_c", "greet_cpp"):
        run(project / "build" / program, ifuncs)
    run(prefix / "bin/ifunc", "inspect", ifuncs / "greet.ifunc")


def test_other_headers_beside_ours_do_not_reach_an_ifunc(prefix, tmp_path):
    """As below /usr, where <stdint.h> is this machine's: an ifunc for another processor must not get it."""
    stranger = prefix / "include/stdint.h"
    stranger.write_text("#error another machine's header\n")
    try:
        run(prefix / "bin/ifunc", "build", "--quiet", HERE / "project/greet.c", "-o", tmp_path / "greet.ifunc")
    finally:
        stranger.unlink()


@pytest.mark.skipif(shutil.which("rustc") is None, reason="there is no rustc")
def test_an_installed_copy_builds_ifuncs_in_rust(prefix, tmp_path):
    run(prefix / "bin/ifunc", "build", "--quiet", kit.ROOT / "examples/08-rust/histogram.rs", "--target", f"{os.uname().machine}-linux-gnu",
        "-o", tmp_path / "histogram.ifunc")


def test_the_same_programs_are_built_by_pkg_config(prefix, project, tmp_path):
    flags = package_config(prefix, "threechains", "--cflags", "--libs")
    libraries, = package_config(prefix, "threechains", "--variable=libdir")
    for compiler, standard, source in (("cc", "c11", "greet_c.c"), ("c++", "c++20", "greet_cpp.cc")):
        program = tmp_path / pathlib.Path(source).stem
        run(compiler, f"-std={standard}", *STRICT, project / source, "-o", program, *flags)
        run(program, project / "build/ifuncs", env={"LD_LIBRARY_PATH": libraries})


def test_the_library_stays_mapped_when_a_program_closes_it(prefix):
    """A thread of it may wait for a name server when the last node has ended."""
    library = next(prefix.rglob("libthreechains.so"))
    program = (f"import _ctypes, ctypes; library = ctypes.CDLL({str(library)!r}); _ctypes.dlclose(library._handle); "
               "print(open('/proc/self/maps').read())")
    assert library.name in run(sys.executable, "-c", program)


def documented_flags():
    """What the documentation puts in front of a program for the papers' API."""
    page, header = ((kit.ROOT / file).read_text() for file in ("docs/ucp-ifunc.md", "include/threechains/ucp_ifunc.h"))
    flags, = re.findall(r"^cc (.*) program\.c \$\(pkg-config --cflags --libs ucp_ifunc\)$", page, re.M)
    assert f"cc {flags} program.c " in header, "the page and the header recommend the same"
    return flags.split()


class Papers:
    """Programs for the papers' API. They know UCX's header; what is added is one header put in front and one library."""

    def __init__(self, prefix, folder):
        self.folder = folder
        self.flags = [*package_config(prefix, "ucx", "--cflags", "--libs"), "-include", "threechains/ucp_ifunc.h",
                      *package_config(prefix, "ucp_ifunc", "--cflags", "--libs")]
        self.documented = [*documented_flags(), *package_config(prefix, "ucp_ifunc", "--cflags", "--libs")]
        self.libraries, = package_config(prefix, "ucp_ifunc", "--variable=libdir")

    def compile(self, source, *options):
        program = self.folder / source.stem
        run("cc", "-std=gnu11", *STRICT, f"-I{UCP_EXAMPLES}", source, "-o", program, *options, *self.flags)
        return program

    def run(self, program, ifuncs, *arguments):
        run(program, *arguments, seconds=60, env={
            "LD_LIBRARY_PATH": self.libraries, "UCX_IFUNC_LIB_DIR": str(ifuncs), "UCX_TLS": "posix,self,tcp",
            "UCX_WARN_UNUSED_ENV_VARS": "n"})


@pytest.fixture
def papers(prefix, tmp_path):
    if not list(prefix.rglob("ucp_ifunc.pc")):
        pytest.skip("this build has no UCX")
    return Papers(prefix, tmp_path)


def test_programs_of_the_papers_time_know_nothing_of_threechains():
    for source in (HERE / "ucp/form_2022.c", HERE / "ucp/paper_listing.c", UCP_EXAMPLES / "peer.h"):
        assert not re.search(r"#include.*threechains", source.read_text()), source


def test_programs_for_the_papers_api_run_with_an_installed_copy(prefix, papers, tmp_path):
    for example in ("ring", "chase_nodes", "without_slots"):
        papers.compile(UCP_EXAMPLES / f"{example}.c")
    papers.compile(UCP_EXAMPLES / "listing_1_4.c", "-DTHREECHAINS_UCP_IFUNC_2021")
    ifuncs = tmp_path / "ifuncs"
    ifuncs.mkdir()
    for source, *flags in ((HERE / "ucp/paq8px.c", f"-I{HERE / 'ucp'}"), (UCP_EXAMPLES / "count.c",)):
        run(prefix / "bin/ifunc", "build", "--quiet", source, "-o", ifuncs / f"{source.stem}.ifunc", "--", *flags)
    papers.run(papers.compile(HERE / "ucp/paper_listing.c", "-DTHREECHAINS_UCP_IFUNC_2021"), ifuncs)
    papers.run(papers.compile(UCP_EXAMPLES / "pingpong.c"), ifuncs, 100, 20)


@pytest.mark.parametrize("first_line", ["#define _GNU_SOURCE", ""])
def test_the_documented_line_compiles_a_program_that_wants_gnu_declarations(papers, tmp_path, first_line):
    source = tmp_path / "gnu.c"
    source.write_text(f"{first_line}\n#include <sched.h>\n#include <stdio.h>\n#include <ucp/api/ucp.h>\n" """
int main(void) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  ucp_ifunc_reg_param_t param = {.name = "none", .pure = 0, .llvm_bc = 1};
  ucp_ifunc_h ifunc;
  return CPU_COUNT(&processors) != 0 || ucp_register_ifunc(NULL, param, &ifunc) == UCS_OK || ifunc != NULL;
}
""")
    for compiler in ("cc", os.environ.get("CLANG", "clang-22")):
        run(compiler, "-std=c11", *STRICT, source, "-o", tmp_path / "gnu", *papers.documented)
        papers.run(tmp_path / "gnu", tmp_path)


def test_the_papers_header_is_cplusplus_as_well(papers, tmp_path):
    source = tmp_path / "form.cc"
    source.write_text("#include <ucp/api/ucp.h>\n"
                      "int main() { return ucp_register_ifunc(nullptr, {}, nullptr) == UCS_OK; }\n")
    run("c++", "-std=c++11", *STRICT, source, "-o", tmp_path / "form", *papers.flags)
    papers.run(tmp_path / "form", tmp_path)


def test_loose_bitcode_is_packed_by_the_installed_toolchain(papers, tmp_path):
    program = papers.compile(HERE / "ucp/form_2022.c")
    triple = f"{os.uname().machine}-linux-gnu"
    loose = tmp_path / "loose"
    loose.mkdir()
    bitcode = loose / f"bytes.{triple}.bc"
    run(os.environ.get("CLANG", "clang-22"), f"--target={triple}", "-O2", "-fPIC", "-c", "-emit-llvm",
        HERE / "ucp/bytes.c", "-o", bitcode)
    (loose / "bytes.deps").write_text("c\n")
    papers.run(program, loose)
    papers.run(program, loose, bitcode, triple)


def test_a_project_takes_in_the_sources(tmp_path):
    """By FetchContent: configured, and all that it would build is there. (It is not built: that takes minutes.)"""
    for file in ("greet.c", "greet_c.c"):
        shutil.copy(HERE / "project" / file, tmp_path)
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.25)
project(outer LANGUAGES C CXX)
include(FetchContent)
FetchContent_Declare(threechains SOURCE_DIR ${SOURCES})
FetchContent_MakeAvailable(threechains)
tc_add_ifunc(greet greet.c)
add_executable(greet_c greet_c.c)
target_link_libraries(greet_c PRIVATE ThreeChains::threechains)
""")
    build = tmp_path / "build"
    run("cmake", "-S", tmp_path, "-B", build, "-G", "Ninja", f"-DSOURCES={kit.ROOT}", "-DCMAKE_C_COMPILER=clang-22",
        "-DCMAKE_CXX_COMPILER=clang++-22")
    planned = run("ninja", "-C", build, "-n", "greet_c", "ifunc-greet", "ifunc")
    assert "libthreechains.so" in planned and "Building ifunc greet" in planned, planned[-2000:]
    targets = run("ninja", "-C", build, "-t", "targets", "all")
    assert "base_test" not in targets and "ifunc-bench" not in targets, "tests and benchmarks are not for a project outside"
