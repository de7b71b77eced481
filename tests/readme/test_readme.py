# SPDX-License-Identifier: Apache-2.0
"""Every command in every README and page is run, in the order of the page, in a copy of the tree.

pages.py says how a page is read. A page's commands share one shell. They run in the page's folder if it is an example's,
and in the root of the tree otherwise, with the ifunc command on the PATH and a folder of keys of its own. A process in the background is given time to be
ready, and ends with the page. Ports are other ones than the page says. `make` is only asked whether it knows the target.

The hosts of a page are network namespaces, each with keys of its own; the n-th that the page names has the address 10.0.0.n
there. They share the folder. That needs root.
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

import pytest

import kit
import pages

pytestmark = pytest.mark.release_only
SECONDS = 100
LEFT_OUT = {"docs/measuring.md"}  # its commands take minutes
PAGES = sorted(str(page.relative_to(kit.ROOT))
               for pattern in ("*.md", "docs/*.md", "docs/*/README.md", "examples/README.md", "examples/*/README.md",
                               "bench/*/README.md", "bindings/*/*/README.md")
               for page in kit.ROOT.glob(pattern) if str(page.relative_to(kit.ROOT)) not in LEFT_OUT)

PRELUDE = r"""
make() {
  [ $# -gt 0 ] || { echo "make alone only prints its help"; return 1; }
  command make --dry-run "$@" >/dev/null
}
# Until a process in the background says that it is ready, has ended, or says nothing for long.
wait_until_ready() {
  local job=$!
  for _ in $(seq 1000); do
    grep -q '^ready ' "$1" && return 0
    kill -0 "$job" 2>/dev/null || { wait "$job"; return; }
    sleep 0.02
  done
  echo "it is not ready after 20 s"
  return 1
}
"""


def copy_of_the_tree(t):
    """Copies of the folders that a page may write to; links to the others, and to the build that is tested."""
    root = pathlib.Path(tempfile.mkdtemp(dir=t.directory))
    for entry in kit.ROOT.iterdir():
        if entry.name == "examples":
            shutil.copytree(entry, root / entry.name, symlinks=True)
        elif entry.name not in ("build", ".git"):
            (root / entry.name).symlink_to(entry)
    (root / "build").mkdir()
    (root / "build/release").symlink_to(kit.BUILD)
    return root


def with_other_ports(text, taken):
    def other(found):
        if found[0] not in taken:
            taken[found[0]] = kit.free_addresses(1)[0]
        return taken[found[0]]
    return re.sub(r"127\.0\.0\.1:[1-9]\d{3,4}\b", other, text)


def hosts_of(text):
    """Names of the hosts on which a page types commands, in its order."""
    commands = [command for block in pages.blocks(text) if block.language == "console" and "not tested" not in block.notes
                for command in block.commands()]
    return list(dict.fromkeys(command.host for command in commands if command.host))


def with_our_hosts(t, text):
    """The page with the addresses of namespaces, and what goes in front of `ifunc` on each host."""
    names = hosts_of(text)
    if not names:
        return text, {}
    made = t.namespaces(len(names))
    for number, (_, address) in enumerate(made, 1):
        text = re.sub(rf"\b10\.0\.0\.{number}\b", address, text)
    text = text.replace("10.0.0.0/", made[0][1].rsplit(".", 1)[0] + ".0/")
    return text, {name: f"env THREECHAINS_HOME={t.path(name)} {' '.join(kit.inside(namespace))} "
                  for name, (namespace, _) in zip(names, made)}


class Session:
    """What is run for one page: a shell script that stops at the first command that fails."""

    def __init__(self, directory, hosts):
        self.directory, self.script, self.steps = directory, [PRELUDE], []
        self.hosts = hosts  # by name, what goes in front of a command there

    def add(self, command):
        out = f"{self.directory}/out.{len(self.steps)}"
        self.steps.append((command, out))
        failed = "!" if command.fails else ""
        text = self.hosts[command.host] + command.text if command.host and command.text.startswith("ifunc ") else command.text
        says_ready = "serve" in command.text or any(row.startswith("ready ") for row in command.shown or [])
        in_background = re.search(r"&(\s*(#.*)?$| done)", command.text, re.S)
        wait = f"wait_until_ready {out}" if says_ready and in_background else ":"
        self.script.append(f"echo {len(self.steps) - 1} >{self.directory}/at\n"
                           f"{failed} {{ {text}\n}} >{out} 2>&1 && {wait} >>{out} || exit 1\n")

    def run(self, t, folder):
        (pathlib.Path(self.directory) / "script").write_text("\n".join(self.script))
        environment = {"PATH": f"{kit.BUILD}/bin:{os.environ['PATH']}", "TMPDIR": self.directory,
                       "PYTHONDONTWRITEBYTECODE": "1", "THREECHAINS_HOME": f"{self.directory}/home"}
        process = t.start("bash", "-c", f"cd {shlex.quote(str(folder))} && . {self.directory}/script", env=environment)
        try:
            status = process.wait(SECONDS)
        finally:
            stop_all(process.pid)
        command, out = self.steps[int(pathlib.Path(self.directory, "at").read_text())]
        what = "did not fail" if command.fails else "failed"
        assert status == 0, f"line {command.line}: `{command.text}` {what}:\n{tail(out)}"
        for command, out in self.steps:
            if command.shown is not None:
                compare(command, pathlib.Path(out).read_text(errors="replace"))


def tail(path):
    return pathlib.Path(path).read_text(errors="replace")[-3000:] if os.path.exists(path) else ""


def group_lives(group):
    """Processes that have ended and were not waited for do not count."""
    found = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    return any(row.split()[0] == str(group) and row.split()[1][0] != "Z" for row in found.splitlines())


def stop_all(group):
    """Everything that the page left running."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
        with contextlib.suppress(AssertionError):
            return kit.run_until(lambda: not group_lives(group), "its processes ended", 5)
    raise AssertionError("processes of this page cannot be killed")


def compare(command, printed):
    """`…` in a page stands for anything. What nodes say when the page's end stops them belongs to no command."""
    printed = re.sub(r"(\[node \d+\] )?\d{4}-\d\d-\S+ \S+ warning: ifunc serve: stops[^\n]*\n?", "", printed)
    pattern = r"\s*\n\s*".join(".*".join(re.escape(part.strip()) for part in row.split("…")) for row in command.shown)
    assert re.fullmatch(pattern + r"\s*", printed.strip(), re.S), \
        f"line {command.line}: `{command.text}` printed\n{printed}\nwhen the page says\n" + "\n".join(command.shown)


def is_so(t, condition, root):
    return subprocess.run(["bash", "-c", condition], cwd=root, capture_output=True, timeout=20, check=False).returncode == 0


def run_page(t, page, text):
    root, taken = copy_of_the_tree(t), {}
    folder = root / pathlib.Path(page).parent if page.startswith("examples/") else root
    if page == "examples/README.md":
        folder = root  # it says so
    text, hosts = with_our_hosts(t, text)
    session, left_out, ran = Session(tempfile.mkdtemp(dir=t.directory), hosts), [], 0
    for block in pages.blocks(with_other_ports(text, taken)):
        if block.language not in pages.RUN or "not tested" in block.notes:
            continue
        if "tested where" in block.notes and not is_so(t, block.notes["tested where"], root):
            left_out.append(f"line {block.line}, where `{block.notes['tested where']}`")
            continue
        if "test first" in block.notes:
            session.add(pages.Command(block.line, block.notes["test first"], None))
        for command in block.commands():
            session.add(command)
        ran += 1
    if ran:
        session.run(t, folder)
    if left_out:
        pytest.skip(f"{page}: {'; '.join(left_out)}. {ran} other blocks ran")


def has_commands(page):
    return any(block.language in pages.RUN and "not tested" not in block.notes
               for block in pages.blocks((kit.ROOT / page).read_text()))


def test_no_page_has_commands_that_are_not_run():
    wrong = []
    for page in PAGES:
        try:
            pages.check((kit.ROOT / page).read_text())
        except ValueError as error:
            wrong.append(f"{page}: {error}")
    assert not wrong, "\n".join(wrong)


def refused(do, *arguments):
    try:
        do(*arguments)
    except (AssertionError, ValueError):
        return True
    return False


def test_a_page_whose_command_does_something_else_fails(t):
    run_page(t, "README.md", "```console\n$ echo one; echo two\none\n…o\n$ ifunc serve --listen 127.0.0.1:7001 &\n"
                             "ready 127.0.0.1:7001\n```\n")
    for rows in ("false", "true\nfalse\ntrue", "make", "make no_such_target", "ifunc serve --no-such-option &"):
        assert refused(run_page, t, "README.md", f"```sh\n{rows}\n```\n"), rows
    for rows in ("$ echo one\ntwo", "$ echo one\none\ntwo", "$ echo 'ifunc: this failed'\nifunc: this failed"):
        assert refused(run_page, t, "README.md", f"```console\n{rows}\n```\n"), rows


def test_a_page_that_hides_a_command_is_refused():
    pages.check("```text\nifunc bench [--json]\n```\n- a list\n\n    goes on\n\n"
                "<!-- not tested: why -->\n```sh\nfalse\n```\n")
    for text in ("```\nls\n```\n", "words\n\n    ifunc build a.c\n", "```text\nifunc build a.c\n```\n",
                 "```text\n$ ./demo.sh 1\n```\n", "```console\noutput alone\n```\n", "```sh\nls\n",
                 "<!-- not testd: why -->\n```sh\nls\n```\n", "<!-- not tested: why -->\nwords\n"):
        assert refused(pages.check, text), text


def case_of(page):
    def case(t):
        run_page(t, page, (kit.ROOT / page).read_text())
    return case


for a_page in PAGES:
    try:
        runs = has_commands(a_page)
    except ValueError:
        runs = False  # the case above says what is wrong
    if runs:
        name = re.sub(r"\W+", "_", re.sub(r"(/README)?\.md$", "", a_page))
        globals()[f"test_the_commands_of_{name}_work"] = case_of(a_page)
