# SPDX-License-Identifier: Apache-2.0
"""`ifunc ping`, `ifunc stat` and `ifunc info`, as operators and their scripts use them."""

import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import struct

import pytest

import kit
from kit import SHM, TCP

ECHO, LINGER = (str(kit.BUILD / f"ifuncs/{name}.ifunc") for name in ("echo", "linger"))
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
OK, UNHEALTHY, USAGE, UNREACHABLE, REFUSED, BAD_CONFIGURATION = 0, 1, 2, 69, 77, 78
COMMANDS = [["ping", "-c", "1"], ["stat"]]


def each_command(test):
    return pytest.mark.parametrize("command", COMMANDS, ids=["ping", "stat"])(test)


def nobody():
    return kit.free_addresses(1)[0]


@contextlib.contextmanager
def lingering(t, *options):
    """A node in which the ifunc `linger` runs, until the end of the block."""
    gate = t.write("gate", struct.pack("II", 0, 0))
    node = t.serve("--data", f"gate={gate}", *options, env=SHM)
    sender = t.start(kit.IFUNC, "send", LINGER, node.address, "--payload", "x", "--timeout", "600000", env=SHM)
    kit.run_until(lambda: struct.unpack("II", pathlib.Path(gate).read_bytes())[0] == 1, "the ifunc runs")
    try:
        yield node
    finally:
        with open(gate, "r+b") as file:
            file.seek(4)
            file.write(struct.pack("I", 1))
    assert sender.wait() == 0, sender.err


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_ping_prints_each_round_trip_and_their_spread(t, transport):
    node = t.serve("--name", "ana's", env={"TC_TRANSPORT": transport})
    result = t.ifunc("ping", "-i", "0", node.address, env={"TC_TRANSPORT": transport})
    assert result.code == OK, result
    lines = result.out.splitlines()
    how = {"shm": "shm", "tcp": "tls"}[transport]
    for number, line in enumerate(lines[:4], 1):
        assert re.fullmatch(rf"answer from ana's by {how}: seq={number} time=\d+\.\d{{3}} ms", line), result
    assert lines[4:6] == [f"--- {node.address} ---", "4 sent, 4 answered, 0 % lost"], result
    spread = re.fullmatch(r"round trips min/median/max = ([\d.]+)/([\d.]+)/([\d.]+) ms", lines[6])
    assert spread and sorted(map(float, spread.groups())) == list(map(float, spread.groups())), result


def test_ping_gives_json_with_units_in_its_names(t):
    node = t.serve("--name", "one", env=SHM)
    result = t.ifunc("ping", "-c", "3", "-i", "0.01", "--json", node.address, env=SHM)
    told = json.loads(result.out)
    assert result.code == OK and told["schema"] == "threechains-ping/1" and TIME.fullmatch(told["time"]), result
    assert (told["state"], told["exit_code"], told["error"]) == ("ok", 0, None), told
    assert (told["address"], told["name"], told["transport"]) == (node.address, "one", "shm"), told
    assert (told["sent"], told["answered"], told["draining"]) == (3, 3, False), told
    assert 0 < told["round_trip_min_ns"] <= told["round_trip_median_ns"] <= told["round_trip_max_ns"], told


def test_stat_shows_what_the_node_counts_with_units(t):
    node = t.serve("--name", "one", env=SHM)
    assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
    result = t.ifunc("stat", node.address, env=SHM)
    lines = result.out.splitlines()
    assert result.code == OK and re.fullmatch(rf"one at {node.address}, version [\d.]+, up \d+ s", lines[0]), result
    assert lines[1] == "runs nothing now", result
    numbers = {name: (int(value), unit) for name, value, unit in (line.split() for line in lines[2:])}
    assert numbers["executed"] == (1, "calls") and numbers["links"] == (1, "connections"), result
    listed = re.findall(r"^([\w-]+) \(([\w-]+)\)$", t.ifunc("statistics").out, re.MULTILINE)
    assert [(name, unit) for name, (_, unit) in numbers.items()] == listed


def test_stat_gives_a_json_object_for_each_node_and_the_worst_exit_code(t):
    one, dead, two = t.serve("--name", "one"), nobody(), t.serve("--name", "two", "--id", "7")
    result = t.ifunc("stat", "--json", one.address, dead, two.address)
    first, second, third = map(json.loads, result.out.splitlines())
    assert result.code == UNREACHABLE and dead in result.err, result
    for told in (first, second, third):
        assert told["schema"] == "threechains-stat/1" and TIME.fullmatch(told["time"]), told
    assert (first["state"], first["name"], first["id"], first["exit_code"]) == ("ok", "one", None, OK), first
    assert (third["name"], third["id"], third["running"], third["draining"]) == ("two", 7, None, False), third
    assert first["uptime_ns"] > 0 and first["round_trip_ns"] > 0, first
    assert first["statistics"]["executed"] == 0 and "code_bytes" in first["statistics"], first
    assert (second["state"], second["exit_code"], second["statistics"]) == ("unreachable", UNREACHABLE, None), second
    assert dead in second["error"], second


@each_command
@pytest.mark.parametrize("address", ["port", "socket", "name"])
def test_an_endpoint_where_nobody_is_never_counts_as_well(t, command, address):
    address = {"port": nobody(), "socket": f"unix:{t.path('none.socket')}", "name": "no.such.host.invalid:7000"}[address]
    for more in ([], ["--json"]):
        result = t.ifunc(*command, *more, address, "--timeout", "3000")
        assert result.code == UNREACHABLE and f"ifunc {command[0]}: {address}: " in result.err, result


@each_command
def test_who_is_no_node_never_counts_as_well(t, command):
    with pretender() as address:
        result = t.ifunc(*command, "--timeout", "500", address, env=TCP)
    assert result.code in (UNHEALTHY, UNREACHABLE) and address in result.err, result


@contextlib.contextmanager
def pretender():
    """Listens, and says nothing."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@each_command
def test_a_node_tells_nothing_to_a_key_that_it_does_not_know(t, command):
    node, stranger = t.serve(env=TCP), t.home("stranger")
    stranger.trust("node", t.own_home)
    result = t.ifunc(*command, "--json", node.address, env={**TCP, **stranger.env})
    assert result.code == REFUSED and f"ifunc {command[0]}: {node.address}: " in result.err, result
    assert json.loads(result.out)["state"] == "refused", result


@each_command
def test_a_key_that_may_run_nothing_may_ask(t, command):
    friend = t.home("friend")
    t.own_home.trust("friend", friend, "run=none")
    node = t.serve(env=TCP)
    friend.trust("node", t.own_home)
    env = {**TCP, **friend.env}
    assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=env).code == 1
    result = t.ifunc(*command, node.address, env=env)
    assert result.code == OK, result


@each_command
def test_wrong_usage_and_a_bad_key_are_told_apart(t, command):
    for arguments in (["no-address"], [], [nobody(), "--no-such-option"], [nobody(), "--timeout", "0"]):
        result = t.ifunc(*command, *arguments)
        assert result.code == USAGE and result.err, result
    broken = t.home("broken")
    broken.key_file().write_text("this is no key")
    result = t.ifunc(*command, nobody(), env=broken.env)
    assert result.code == BAD_CONFIGURATION and str(broken.key_file()) in result.err, result


@each_command
def test_a_node_answers_while_an_ifunc_runs_on_another_thread_or_in_a_cell(t, command):
    with lingering(t, "--threads", "2") as node:
        result = t.ifunc(*command, node.address, env=SHM)
        assert result.code == OK, result
        if command == ["stat"]:
            assert "\nruns ifunc 'linger'\n" in result.out, result


@each_command
def test_a_node_whose_thread_is_busy_for_too_long_is_not_well(t, command):
    with lingering(t) as node:
        result = t.ifunc(*command, "--timeout", "300", node.address, env=SHM)
        assert result.code in (UNHEALTHY, UNREACHABLE) and node.address in result.err, result
    assert t.ifunc(*command, node.address, env=SHM).code == OK


def test_watching_into_a_pipe_is_one_look(t):
    node = t.serve(env=SHM)
    result = t.ifunc("stat", "--watch", "0.2", node.address, env=SHM)
    assert result.code == OK and result.out.count("runs nothing now") == 1 and "\x1b" not in result.out, result


def test_watching_at_a_terminal_shows_what_has_changed(t):
    node = t.serve(env=SHM)
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        watcher = kit.process.subprocess.Popen(
            [*kit.process.ENDS_WITH_US, kit.IFUNC, "stat", "--watch", "0.2", node.address], stdout=theirs,
            stdin=kit.process.subprocess.DEVNULL, env=kit.environment(SHM))
        os.close(theirs)
        shown = bytearray()

        def shows(pattern):
            shown.extend(screen.read(65536))
            return re.search(pattern, shown.decode(errors="replace"))

        try:
            kit.run_until(lambda: shows(r"executed +0 calls"), "the first look")
            assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
            kit.run_until(lambda: shows(r"executed +1 calls  \+1"), "what has changed")
        finally:
            watcher.send_signal(signal.SIGINT)
            watcher.wait(60)


def test_what_a_node_is_asked_holds_no_call_up_and_leaves_nothing_behind(t):
    node = t.serve(env=SHM)
    for _ in range(20):
        assert t.ifunc("ping", "-c", "5", "-i", "0", node.address, env=SHM).code == OK
    told = json.loads(t.ifunc("stat", "--json", node.address, env=SHM).out)["statistics"]
    assert (told["links"], told["executed"], told["code_loads"], told["failures"]) == (1, 0, 0, 0), told


# ---- ifunc info


def test_info_tells_where_each_part_was_loaded_from_and_how_to_get_what_is_missing(t):
    told = json.loads(t.ifunc("info", "--json").out)
    assert told["schema"] == "threechains-info/1" and TIME.fullmatch(told["time"]) and told["state"] == "ok", told
    for part in told["parts"]:
        assert bool(part["path"]) != bool(part["get"] and part["error"]), part
        assert part["purpose"] and (part["path"] is None or os.path.exists(part["path"])), part
    paths = {part["name"]: part["path"] for part in told["parts"]}
    assert paths["library"].startswith(str(kit.BUILD / "lib/libthreechains.so")), told
    assert told["transports"]["tls"] == (paths["tls"] is not None) and told["transports"]["shm"] is True, told
    assert told["cpu"]["cores"] >= 1 and told["limits"]["memory_bytes"] > 2**20, told
    assert told["keys"]["home"] == str(t.own_home.path) and told["keys"]["own_key"] == t.own_home.public_key(), told


def test_info_names_each_missing_part_with_what_to_do(t):
    result = t.ifunc("info", env={"TC_LIBEXEC": t.path("nowhere")})
    assert result.code == OK and "\nmissing\n" in result.out, result
    for name, program in (("cell", "threechains-cell"), ("toolchain", "ifunc-toolchain"), ("bench", "ifunc-bench"),
                          ("top", "ifunc-top")):
        assert re.search(rf"\n  {name} \(.*\)\n    to get it: install .*\n    why: \S*/nowhere/{program} is not there", result.out), result


@pytest.mark.parametrize("file", ["key", "keyring"])
def test_info_finds_keys_that_cannot_be_used(t, file):
    broken = t.home("broken")
    path = {"key": broken.key_file(), "keyring": broken.keyring}[file]
    path.write_text("nonsense\n")
    for options in ([], ["--json"]):
        result = t.ifunc("info", *options, env=broken.env)
        assert result.code == BAD_CONFIGURATION and result.err.startswith("ifunc info: ") and str(path) in result.err, result
