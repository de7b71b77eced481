# SPDX-License-Identifier: Apache-2.0
"""`ifunc completion` and `ifunc man`: scripts that shells take, and pages without a warning."""

import re
import shutil

import pytest

import kit

# What readline does: the words so far, and the place of the last one.
COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_ifunc && printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def completed(t):
    """What bash offers for the last of these words."""
    script = t.write("ifunc.bash", t.ifunc("completion", "bash").out)

    def complete(*words):
        result = t.run("bash", "-c", COMPLETE, "bash", script, *words)
        assert result.code == 0 and not result.err, result
        return result.out.split()
    return complete


def test_bash_completes_commands_and_commands_of_commands(completed):
    assert completed("ifunc", "se") == ["serve", "send"]
    assert "list" in completed("ifunc", "key", "") and "serve" not in completed("ifunc", "key", "")


def test_bash_completes_every_option_of_the_help(t, completed):
    offered = completed("ifunc", "serve", "--")
    shown = re.findall(r"^  (?:-\w,)?(--[a-z][a-z-]*)", t.ifunc("serve", "--help").out, re.M)
    assert len(shown) > 40 and set(shown) <= set(offered)
    assert {"--tune", "--no-tune"} <= set(offered)
    assert completed("ifunc", "serve", "--listen", "x", "--ring-b") == ["--ring-bytes"]


def test_bash_completes_the_choices_of_a_value(completed):
    assert completed("ifunc", "serve", "--log", "") == ["off", "error", "warn", "info", "debug"]
    assert completed("ifunc", "serve", "--log", "=", "w") == ["warn"]
    assert completed("ifunc", "serve", "--bootstrap", "") == ["none", "auto", "pmix"]


def test_bash_leaves_files_and_the_command_of_a_cluster_to_itself(completed):
    assert completed("ifunc", "serve", "--config", "") == []
    assert completed("ifunc", "cluster", "2", "--", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_takes_its_script(t, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    result = t.run(shell, "-n", t.write("script", t.ifunc("completion", shell).out))
    assert result.code == 0 and not result.err, result


def test_another_shell_and_another_command_are_wrong_usage(t):
    assert t.ifunc("completion", "tcsh").code == 2
    result = t.ifunc("man", "sevre")
    assert result.code == 2 and "did you mean 'serve'" in result.err, result


def test_there_is_a_page_for_each_command_and_none_has_a_warning(t):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    folder = t.path("man")
    assert t.ifunc("man", "--all", folder).code == 0
    commands = re.findall(r"^  ([a-z]+) +\S", t.ifunc("--help").out.split("Subcommands:")[1].split("A first round")[0], re.M)
    for page in ["ifunc", *(f"ifunc-{command}" for command in commands)]:
        result = t.run("groff", "-man", "-ww", "-Tutf8", f"{folder}/{page}.1")
        assert result.code == 0 and not result.err, (page, result)
    assert "--no-tune" in kit.run("groff", "-man", "-Tascii", "-P-cbou", f"{folder}/ifunc-serve.1").out
