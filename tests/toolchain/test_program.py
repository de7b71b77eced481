# SPDX-License-Identifier: Apache-2.0
"""ifunc-toolchain as people meet it: its exit status, and that an error is one line that names the file."""

import os
import pathlib

import pytest

import kit

EXAMPLES = kit.ROOT / "examples"
TSI, HELLO = str(EXAMPLES / "01-increment/tsi.c"), str(EXAMPLES / "02-hello/hello.c")


@pytest.fixture
def toolchain(t, monkeypatch):
    """Runs the toolchain in a directory of its own."""
    monkeypatch.chdir(t.directory)
    return lambda *arguments, env={}: t.run(str(kit.BUILD / "libexec/threechains/ifunc-toolchain"), *arguments, env=env, seconds=60)


def test_it_says_what_it_built(toolchain):
    result = toolchain("build", TSI)
    assert result.code == 0 and result.err == "", result
    assert pathlib.Path("tsi.ifunc").stat().st_size > 0
    assert result.out.count("\n") == 1 and result.out.startswith("tsi.ifunc: "), result
    assert " bytes for x86_64-linux-gnu, aarch64-linux-gnu" in result.out, result


@pytest.mark.parametrize("words, says", [
    (["--singn", "ana", TSI], "there is no option '--singn'; did you mean '--sign'?"),
    ([], "no source file is given"),
    ([TSI, "--no-object=perhaps"], "--no-object = perhaps")], ids=["misspelt", "nothing", "no_switch"])
def test_wrong_usage_is_one_line_with_the_commands_name_and_exit_code_2(toolchain, words, says):
    result = toolchain("build", *words)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
    assert result.err.startswith("ifunc") and says in result.err, result


def test_quiet_prints_nothing(toolchain):
    result = toolchain("build", HELLO, "-o", "other.ifunc", "--target", "aarch64-linux-gnu", "--no-object", "-q", "--",
                       "-DX=1")
    assert (result.code, result.out) == (0, ""), result
    assert pathlib.Path("other.ifunc").stat().st_size > 0


def test_a_refusal_is_one_line_that_names_the_place_and_leaves_the_old_file(toolchain):
    pathlib.Path("foo.c").write_text("void foo_main(void *p, unsigned long n, void *t) { nowhere(); }\n")
    pathlib.Path("foo.ifunc").write_text("old")
    result = toolchain("build", "foo.c", "--target", "x86_64-linux-gnu", "--", "-Wno-everything", "-Wno-error", "-std=gnu89")
    assert result.code != 0 and result.err.count("\n") == 1, result
    assert result.err.startswith("ifunc build: foo.c:1: 'nowhere' is called but"), result
    assert pathlib.Path("foo.ifunc").read_text() == "old", "a failed build touched the file that was there"


@pytest.mark.parametrize("env, words", [
    pytest.param({"TC_CLANG": "/nonexistent/clang"}, "TC_CLANG is set to '/nonexistent/clang'", id="named"),
    pytest.param({"PATH": "/nonexistent", "TC_ZIG": ""}, "there is no clang-22 or clang on the PATH; install clang-22", id="on_the_path")])
def test_a_missing_compiler_is_named(toolchain, env, words):
    result = toolchain("build", TSI, env=env)
    assert result.code != 0 and result.err.startswith(f"ifunc build: {words}"), result


# ---- What is said of a source

WARNS = """#warning everywhere
#ifdef __aarch64__
#warning only there
#endif
void foo_main(void *p, unsigned long n, void *t) { int unused; }
"""


def test_a_warning_is_shown_once_however_many_targets_there_are(toolchain):
    pathlib.Path("foo.c").write_text(WARNS)
    result = toolchain("build", "foo.c", "--target", "x86_64-linux-gnu", "--target", "aarch64-linux-gnu", "--target",
                       "riscv64-linux-gnu", "--", "-Wall")
    assert result.code == 0, result
    for words in ("foo.c:1:2: warning: everywhere", "foo.c:3:2: warning: only there",
                  "foo.c:5:56: warning: unused variable 'unused'"):
        assert result.err.count(words) == 1, (words, result)


def test_what_is_wrong_is_said_with_a_path_that_leads_there_from_here(toolchain):
    away, below = pathlib.Path("away"), pathlib.Path("away/here/below")
    below.mkdir(parents=True)
    source = "void foo_main(void *p, unsigned long n, void *t) {\n  nowhere();\n}\n"
    for place in (away, below):
        (place / "foo.c").write_text(source)
    (below / "foo.h").write_text("static void in_header(void) {\n  nowhere();\n}\n")
    (below / "with.c").write_text('#include "foo.h"\nvoid with_main(void *p, unsigned long n, void *t) { in_header(); }\n')
    where = {"below/foo.c": "below/foo.c:2", "../foo.c": f"{away.absolute()}/foo.c:2", "below/with.c": "below/foo.h:2",
             f"{below.absolute()}/foo.c": "below/foo.c:2", f"{away.absolute()}/foo.c": f"{away.absolute()}/foo.c:2"}
    os.chdir(away / "here")
    for name, line in where.items():
        result = toolchain("build", name, "--target", "x86_64-linux-gnu", "--", "-Wno-everything", "-std=gnu89")
        assert result.err.startswith(f"ifunc build: {line}: 'nowhere' is called but"), (name, result)
        file = pathlib.Path(line.rpartition(":")[0])
        assert file.read_text().splitlines()[1] == "  nowhere();"
