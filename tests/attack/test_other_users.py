# SPDX-License-Identifier: Apache-2.0
"""What another user of the same host can do, even one of the same group: nothing."""

import ctypes
import os
import pathlib
import re
import shutil
import socket
import stat

import pytest

import attack
import kit
import messages
import sessions
from kit.client import Client
from kit import SHM

IPC_READ_WRITE = 0


def two_that_share_memory(t, prefix=()):
    """A node and a client that calls it through shared memory."""
    node, client = t.serve(env=SHM, prefix=prefix), Client(t, SHM, prefix=prefix)
    client.must(f"register {t.build('hello.c')}")
    client.must(f"connect {node.address}")
    assert client.ask("call 20000 one") == "ok hello, one"
    return node, client


def system_v_segments(*pids):
    """Numbers of the System V segments that these processes made or touched last."""
    rows = [line.split() for line in pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()]
    column = {name: index for index, name in enumerate(rows[0])}
    return [int(row[column["shmid"]]) for row in rows[1:]
            if {int(row[column["cpid"]]), int(row[column["lpid"]])} & set(pids)]


def shared_mappings(pid):
    """(range, name) of what a process maps shared and writable."""
    rows = [line.split(maxsplit=5) for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return [(row[0], row[5]) for row in rows if row[1] == "rw-s" and len(row) == 6]


def opened(paths):
    """Which of these files can be opened, to read or to write."""
    found = []
    for path in paths:
        for way in [os.O_RDONLY, os.O_RDWR]:
            try:
                os.close(os.open(path, way))
                found.append(path)
            except OSError:
                pass
    return found


def test_another_user_of_the_group_cannot_open_the_memory_of_two_that_talk(t):
    node, client = two_that_share_memory(t)
    pids = [node.pid, client.pid]
    segments = system_v_segments(*pids)

    def attach():
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_ssize_t
        return [segment for segment in segments if libc.shmat(segment, None, IPC_READ_WRITE) != -1]

    assert attack.stranger_does(attach, uid=attack.OTHER_USER) == [], "System V segments"

    rings = {pid: [row for row in shared_mappings(pid) if "memfd:" in row[1]] for pid in pids}
    assert rings[node.pid] and rings[client.pid], f"no memory is shared, so this test says nothing: {rings}"
    descriptors = [f"/proc/{pid}/fd/{number}" for pid in pids for number in os.listdir(f"/proc/{pid}/fd")]
    mapped = [f"/proc/{pid}/map_files/{row[0]}" for pid in pids for row in rings[pid]]
    memory = [f"/proc/{pid}/mem" for pid in pids]
    files = [str(path) for path in pathlib.Path("/dev/shm").glob("**/*") if stat.S_ISREG(path.lstat().st_mode)
             and any(str(path) in name for pid in pids for _, name in shared_mappings(pid))]
    paths = [*descriptors, *mapped, *memory, *files]
    assert set(memory) <= set(opened(paths)), "not even the owner can open it, so this test says nothing"
    assert attack.stranger_does(lambda: opened(paths), uid=attack.OTHER_USER) == []
    assert client.ask("call 20000 two") == "ok hello, two"


def test_two_that_talk_leave_no_memory_where_others_could_find_it(t):
    # Each has a /dev/shm of its own, since other processes use that of this machine.
    own = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh")
    if t.run(*own, "true").code != 0:
        pytest.skip("a process cannot have a /dev/shm of its own here: that needs root, and unshare and mount")
    node, client = two_that_share_memory(t, own)
    assert system_v_segments(node.pid, client.pid) == []
    names = [name for pid in [node.pid, client.pid] for _, name in shared_mappings(pid)]
    assert not [name for name in names if name.startswith(("/dev/shm", "/SYSV"))], names
    assert [name for pid in [node.pid, client.pid] for name in os.listdir(f"/proc/{pid}/root/dev/shm")] == []


def test_another_user_is_refused_at_the_port(t):
    said = messages.record_conversation(t, t.build("hello.c"), "stranger")
    node = attack.ProgramNode(t, "127.0.0.1:0")

    stranger = sessions.certificate(t, t.home("stranger"))
    os.chmod(t.directory, 0o755)
    os.chmod(stranger[1], 0o644)
    refusals = [(lambda: attack.say(node.address, said), attack.KEPT_OUT),
                (lambda: sessions.say(node.address, sessions.inside(said), stranger), "is in no line of the keyring")]
    for say, words in refusals:
        answer = attack.stranger_does(say, uid=attack.OTHER_USER)
        assert words in answer and "hello, stranger" not in answer, answer
        attack.logs_one_line(node, rf"127\.0\.0\.1:\d+ is refused: .*{words}")
    assert (node.stat("executed"), node.stat("codes"), node.stat("refused-peers")) == (0, 0, 2)
    ours = sessions.certificate(t, t.own_home)
    answer = sessions.say(node.address, sessions.inside(said), ours, until=b"hello, stranger")
    assert "hello, stranger" in answer, f"who has the node's key is refused, so this test says nothing: {answer}"


def test_another_user_is_refused_at_the_abstract_unix_socket_by_who_he_is(t):
    said, memory = messages.record_greeting(t, by_unix=True)
    node = attack.ProgramNode(t, "127.0.0.1:0")

    def say():
        return attack.say(attack.unix_name(node.address), said, memory)

    answer = say()
    assert answer and "is not trusted" not in answer, f"the same user is refused, so this test says nothing: {answer}"
    answer = attack.stranger_does(say, uid=attack.OTHER_USER)
    assert "is not trusted" in answer, answer
    assert node.stat("refused-peers") == 1
    pattern = rf"process \d+ of user {attack.OTHER_USER} is refused: .*is not trusted"
    assert len(attack.lines_about(node.err, pattern)) == 1, node.err


def test_another_user_cannot_come_in_by_a_unix_socket_with_a_path(t):
    os.chmod(t.directory, 0o755)  # nothing but the node itself keeps him out
    path = t.path("door")
    node = t.serve("--listen", f"unix:{path}")

    def connect():
        with socket.socket(socket.AF_UNIX) as door:
            return os.strerror(door.connect_ex(path))

    assert attack.stranger_does(connect, uid=attack.OTHER_USER) == "Permission denied"
    os.chmod(path, 0o777)  # and not even the file

    def say():
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(path)
            door.settimeout(5)
            return door.recv(4096).decode(errors="replace")

    assert "is not trusted" in attack.stranger_does(say, uid=attack.OTHER_USER)
    assert attack.lines_about(node.err, rf"of user {attack.OTHER_USER} is refused: "), node.err


def test_a_client_does_not_talk_to_another_user_who_took_its_nodes_socket_name(t):
    address = kit.free_addresses(1)[0]

    def squat():
        door = socket.socket(socket.AF_UNIX)
        door.bind(attack.unix_name(address))
        door.listen()
        return attack.Held(door)

    with attack.stranger(squat, uid=attack.OTHER_USER):
        node = t.serve("--listen", address)
        attack.answers_soon(t, node.address, env={})
        assert attack.lines_about(node.err, "Unix socket is not available"), node.err


def is_of_the_other_user(t, home):
    """Gives him that home, and lets him reach what lies in the directory of the test."""
    os.chmod(t.directory, 0o755)
    for folder, _, files in os.walk(home.path.parent):
        for name in ["", *files]:
            os.chown(os.path.join(folder, name), attack.OTHER_USER, -1)


def serves_as_the_other_user(t, home, *options):
    """A node of his, which takes calls from whoever comes."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("to be another user needs root and setpriv")
    is_of_the_other_user(t, home)
    os.mkdir(t.path("his"), 0o777)
    os.chmod(t.path("his"), 0o777)
    him = ("setpriv", f"--reuid={attack.OTHER_USER}", "--clear-groups")
    return t.serve("--trust", "any", "--log", "debug", *options, prefix=him, env={"HOME": t.path("his"), **home.env})


@pytest.mark.parametrize("transport", [None, "tcp"], ids=["auto", "tcp"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.9.8.7", "[::1]", "own_address"])
def test_another_user_who_listens_where_ones_own_node_did_is_sent_nothing(t, host, transport):
    squatter = t.home("squatter")
    key = squatter.public_key()
    listen = kit.free_addresses(1)[0].replace("127.0.0.1", host)
    if host == "localhost":
        listen = listen.replace(host, "127.0.0.1")
    if host == "own_address":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            if probe.connect_ex(("192.0.2.1", 9)) != 0:
                pytest.skip("this machine has no address but those of loopback")
            listen = listen.replace(host, probe.getsockname()[0])
    hello = t.build("hello.c")
    node = serves_as_the_other_user(t, squatter, "--listen", listen, "--stats")
    victim = t.home("victim")
    address = listen.replace("127.0.0.1", host) if host == "localhost" else listen
    result = t.ifunc("send", hello, address, "--payload", "secret", env={"TC_TRANSPORT": transport, **victim.env})
    attack.says_one_line(result, f"{key}, which is not known here, and any user of this host may listen at")
    assert not victim.known_nodes.exists()

    lets_him = re.search(r"`ifunc (key trust NAME \S+ --at \S+)`", result.err)
    assert victim.run(*lets_him[1].replace("NAME", "him").split(), "--run", "none").code == 0
    result = t.ifunc("send", hello, address, "--payload", "you", env={"TC_TRANSPORT": transport, **victim.env})
    assert (result.code, result.out) == (0, "hello, you"), "as the refusal said"
    assert node.stop() == 0 and node.stats["executed"] == 1


def test_a_ready_file_is_written_through_no_link_of_another_user(t):
    """He guesses the name of the file that the node writes before it has the right one: the ids of processes are no secret."""
    os.chmod(t.directory, 0o755)
    shared, mine = pathlib.Path(t.path("tmp")), pathlib.Path(t.write("mine", "mine"))
    shared.mkdir()
    os.chmod(shared, 0o1777)

    def plant():
        now = os.getpid()
        for number in range(now, now + 2000):
            os.symlink(mine, shared / f"ready.{number}.new")

    attack.stranger_does(plant, uid=attack.OTHER_USER)
    node = t.serve("--ready-file", str(shared / "ready"))
    kit.run_until((shared / "ready").exists, "the ready file")
    assert mine.read_text() == "mine"
    assert (shared / "ready").read_text() == node.address + "\n" and not (shared / "ready").is_symlink()
