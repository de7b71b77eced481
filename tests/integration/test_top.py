# SPDX-License-Identifier: Apache-2.0
"""`ifunc top`, in a terminal and without one. With TC_RENEW=1 the screen that docs/operating.md shows is written there anew."""

import os
import pathlib
import re
import shlex
import signal

import pytest

import kit
from kit import SHM

ECHO = str(kit.BUILD / "ifuncs/echo.ifunc")
# Under sanitizers the tests of its parts run. This whole program ends with what ncurses keeps, which they report as lost.
pytestmark = [
    pytest.mark.skipif(not (kit.BUILD / "libexec/threechains/ifunc-top").exists(), reason="ifunc-top is not built"),
    pytest.mark.release_only,
]

# After the command: its exit code, and the modes of the terminal before and after.
SCRIPT = """
trap : INT
echo before
stty -a >{directory}/before
{variables} {ifunc} top {arguments}
echo "code=$?"
stty -a >{directory}/after
echo done
read line
"""


def top(t, *arguments, variables="", script=SCRIPT, env=SHM, **options):
    words = " ".join(map(shlex.quote, arguments))
    text = script.format(directory=t.directory, ifunc=shlex.quote(str(kit.IFUNC)), arguments=words, variables=variables)
    return kit.Terminal(t, text, env=env, **options)


def ends(t, terminal, code):
    """The program has ended, with that code, and has left the terminal as it was."""
    screen = terminal.wait_for(lambda shown: re.search(r"code=\d+\n(.*\n)*done", shown) and shown, "its end")
    assert re.search(rf"^code={code}$", screen, re.M) and screen.startswith("before\n") and "STATE" not in screen, screen
    assert pathlib.Path(t.path("after")).read_text() == pathlib.Path(t.path("before")).read_text()
    assert terminal.tmux("display-message", "-p", "#{cursor_flag}").strip() == "1", "the cursor is hidden"


def test_a_node_and_its_calls_are_shown(t):
    node = t.serve("--name", "north", env=SHM)
    terminal = top(t, node.address, "--interval", "0.5")
    terminal.wait_for(lambda shown: re.search(rf"ok +north +{node.address}", shown), "the node")

    def calls_per_s(shown):
        assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
        return re.search(rf"{node.address} +\d+s +[1-9]", shown)
    terminal.wait_for(calls_per_s, "its calls per second")
    terminal.type("3")
    terminal.wait_for(lambda shown: re.search(r"^executed +[1-9]", shown, re.M), "what it counts")
    terminal.type("q")
    ends(t, terminal, 0)


def test_keys_change_what_is_shown(t):
    node = t.serve("--name", "north", env=SHM)
    terminal = top(t, node.address)
    terminal.wait_for(lambda shown: "[1 ifuncs]" in shown and "north" in shown, "ifuncs")
    for key, words in (("2", "[2 links]"), ("Tab", "[3 numbers]"), ("Tab", "[1 ifuncs]"), ("h", "any key goes back"),
                       ("x", "[1 ifuncs]"), ("+", "every 5 s"), ("p", "PAUSED, every 5 s"), ("?", "any key goes back"),
                       ("Down", "PAUSED")):
        terminal.type(key)
        terminal.wait_for(lambda shown: words in shown, f"after {key}")
    terminal.type("Escape")
    ends(t, terminal, 0)


def test_the_screen_may_have_any_size_and_another_one_later(t):
    node = t.serve("--name", "north", env=SHM)
    terminal = top(t, node.address, "127.0.0.1:1")
    terminal.wait_for(lambda shown: "north" in shown, "the node")
    terminal.resize(20, 5)
    terminal.wait_for(lambda shown: re.search(r"^STA\S* +NODE +CALL/s$", shown, re.M), "a small screen")
    terminal.resize(200, 60)
    terminal.wait_for(lambda shown: re.search(r"^STATE .* RUNS", shown, re.M) and "q quit" in shown.splitlines()[-1], "a large screen")
    terminal.resize(1, 1)
    terminal.resize(80, 24)
    terminal.wait_for(lambda shown: "north" in shown and "q quit" in shown.splitlines()[23], "the first size")
    terminal.type("q")
    ends(t, terminal, 69)


def test_a_node_that_dies_stays_with_the_reason_and_comes_back(t):
    node = t.serve("--name", "north", env=SHM)
    terminal = top(t, node.address, "--interval", "0.2")
    terminal.wait_for(lambda shown: re.search(r"^ok +north", shown, re.M), "the node")
    node.signal(signal.SIGKILL)
    node.wait()
    terminal.wait_for(lambda shown: re.search(rf"^gone +north +{node.address} +\d+ s: ", shown, re.M), "its end")
    t.serve("--name", "north", "--listen", node.address, env=SHM)
    terminal.wait_for(lambda shown: re.search(r"^ok +north", shown, re.M), "its return")
    terminal.type("q")
    ends(t, terminal, 0)


def test_a_node_that_does_not_answer_holds_up_neither_keys_nor_others(t):
    north, south = (t.serve("--name", name, env=SHM) for name in ("north", "south"))
    terminal = top(t, north.address, south.address, "--timeout", "3600000", "--interval", "0.2")
    terminal.wait_for(lambda shown: re.search(r"^ok +north(.*\n)+ok +south", shown, re.M), "both")
    south.signal(signal.SIGSTOP)

    def age(shown):
        return re.search(rf"^ok +north +{north.address} +(\d+s|\d+m\d+s)", shown, re.M)
    before = terminal.wait_for(age, "its age")[1]
    terminal.wait_for(lambda shown: age(shown) and age(shown)[1] != before, "another age")
    terminal.type("h")
    terminal.wait_for(lambda shown: "any key goes back" in shown, "help")
    terminal.type("q")
    ends(t, terminal, r"\d+")


def test_interrupting_leaves_the_terminal_as_it_was(t):
    node = t.serve("--name", "north", env=SHM)
    terminal = top(t, node.address)
    terminal.wait_for(lambda shown: "north" in shown, "the node")
    terminal.type("C-c")
    ends(t, terminal, 0)


STOPPED = """
set -m
{ifunc} top {arguments}
echo "stopped=$?"
read line
fg >/dev/null
echo "code=$?"
read line
"""


def test_it_can_be_stopped_and_goes_on(t):
    node = t.serve("--name", "north", env=SHM)
    terminal = top(t, node.address, script=STOPPED)
    terminal.wait_for(lambda shown: "north" in shown, "the node")
    terminal.type("C-z")
    terminal.wait_for(lambda shown: "stopped=148" in shown and "STATE" not in shown, "the shell")
    terminal.type("Enter")
    terminal.wait_for(lambda shown: "north" in shown and "stopped" not in shown, "the screen again")
    terminal.type("3")
    terminal.wait_for(lambda shown: "[3 numbers]" in shown, "keys")
    terminal.type("q")
    terminal.wait_for(lambda shown: "code=0" in shown, "its end")


def test_colors_are_shown_unless_nobody_wants_them(t):
    node = t.serve("--name", "north", env=SHM)
    terminal = top(t, node.address)
    terminal.wait_for(lambda shown: "north" in shown, "the node")
    assert re.search(r"\x1b\[32m(\x1b\[\d+m)*ok", terminal.screen("-e")), terminal.screen("-e")


def test_no_colors_are_shown_where_no_color_is_set(t):
    node = t.serve("--name", "north", env=SHM)
    terminal = top(t, node.address, variables="NO_COLOR=1")
    terminal.wait_for(lambda shown: "north" in shown, "the node")
    assert not re.search(r"\x1b\[(\d+;)*[34][0-7]m", terminal.screen("-e")), terminal.screen("-e")


@pytest.mark.parametrize("term", ["dumb", "no-such-terminal", ""])
def test_a_terminal_that_cannot_be_drawn_on_gets_text_and_is_told_why(t, term):
    node = t.serve("--name", "north", env=SHM)
    terminal = top(t, node.address, "--interval", "0.1", variables=f"TERM={term}")
    screen = terminal.wait_for(lambda shown: "done" in shown and shown, "its end")
    assert f"TERM is '{term}'" in screen and re.search(r"^ok +north", screen, re.M) and "code=0" in screen, screen


def test_without_a_terminal_it_is_text_after_two_looks(t):
    node = t.serve("--name", "north", env=SHM)
    for option in ([], ["--once"]):
        result = t.ifunc("top", node.address, "--interval", "0.1", *option, env=SHM)
        assert result.code == 0 and not result.err and re.fullmatch(r"[ -~\n]*", result.out), result
        assert re.search(rf"^ok +north +{node.address} +\d+s +0 +0 ", result.out, re.M), result


def test_the_greatest_exit_code_of_several_nodes_counts(t):
    node, dead = t.serve("--name", "north", env=SHM), kit.free_addresses(1)[0]
    result = t.ifunc("top", "--once", "--interval", "0.1", node.address, dead, env=SHM)
    assert result.code == 69 and f"ifunc top: {dead}: " in result.err, result
    assert re.search(rf"^gone +- +{dead} ", result.out, re.M) and re.search(r"^ok +north", result.out, re.M), result


def test_wrong_usage_and_a_bad_key_are_told_apart(t):
    address = kit.free_addresses(1)[0]
    for arguments in ([], ["no-address"], [address, "--interval", "0"], [address, "--sort", "color"], [address, "--json"]):
        result = t.ifunc("top", *arguments)
        assert result.code == 2 and result.err, result
    broken = t.home("broken")
    broken.key_file().write_text("this is no key")
    result = t.ifunc("top", "--once", address, env=broken.env)
    assert result.code == 78 and str(broken.key_file()) in result.err, result


def test_what_is_missing_is_named_with_how_to_get_it(t):
    result = t.ifunc("top", "127.0.0.1:1", env={"TC_LIBEXEC": t.path("nowhere")})
    assert result.code == 1 and "nowhere/ifunc-top" in result.err and "ncurses" in result.err, result
    assert t.ifunc("top", "--help", env={"TC_LIBEXEC": t.path("nowhere")}).code == 0


def test_a_node_tells_nothing_to_a_key_that_it_does_not_know(t):
    node, stranger = t.serve(env=kit.TCP), t.home("stranger")
    stranger.trust("node", t.own_home)
    result = t.ifunc("top", "--once", "--interval", "0.1", node.address, env={**kit.TCP, **stranger.env})
    assert result.code == 77 and re.search(r"^denied ", result.out, re.M), result


DOCS = kit.ROOT / "docs/operating.md"
SHOWN = re.compile(r"(?<=```console\n)\$ ifunc top (?P<addresses>[^\n]*)\n(?P<screen>.*?)\n(?=```)", re.S)


def words_of(screen):
    """Of each line, what is neither a number nor its unit."""
    units = {"B", "kB", "MB", "GB", "ns", "us", "ms", "s"}
    return [[word for word in line.split() if not re.search(r"\d", word) and word not in units] for line in screen.splitlines()]


def test_the_picture_in_the_docs_is_what_it_shows(t):
    renew, any_transport = os.environ.get("TC_RENEW") == "1", {"TC_TRANSPORT": None}
    addresses = SHOWN.search(DOCS.read_text())["addresses"].split()
    names = ("north", "south")
    nodes = [t.serve("--name", name, "--listen", address if renew else "127.0.0.1:0", env=any_transport)
             for name, address in zip(names, addresses)]
    nobody = addresses[2] if renew else "127.0.0.1:1"
    wider = max(len(node.address) for node in nodes) - len(addresses[0])
    terminal = top(t, *(node.address for node in nodes), nobody, script="exec {ifunc} top {arguments}", env=any_transport,
                   width=80 + wider, height=16)

    def is_full(shown):
        for node in nodes:
            assert t.ifunc("send", ECHO, node.address, "--payload", "x", "--repeat", "1000", env=any_transport).code == 0
        calls = [rf"^ok +{name} +\S+ +\w+ +[1-9]" for name in names] + [r"^echo +[1-9]"]
        return all(re.search(line, shown, re.M) for line in calls) and "refused" in shown and shown
    screen = terminal.wait_for(is_full, "both nodes and their calls").split("\n\n")[0]
    if renew:
        picture = f"$ ifunc top {' '.join(addresses)}\n{screen}\n"
        DOCS.write_text(SHOWN.sub(lambda _: picture, DOCS.read_text()))
    assert words_of(SHOWN.search(DOCS.read_text())["screen"]) == words_of(screen), screen
