# SPDX-License-Identifier: Apache-2.0
"""`ifunc serve` with a socket that whoever started it listens at, as systemd does (sd_listen_fds(3))."""

import os
import pathlib
import signal
import sys

import pytest

import kit

ECHO = str(kit.BUILD / "ifuncs/echo.ifunc")
# Becomes the command, which then has the descriptor 3. argv: what to make of it, and the command.
STARTER = """
import os, socket, sys
kind, command = sys.argv[1], sys.argv[2:]
made = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET,
                     socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM)
made.bind(f"\\0threechains-test-{os.getpid()}" if kind == "unix" else ("127.0.0.1", 0))
if kind not in ("datagram", "deaf"): made.listen(8)
kept = os.dup2(made.fileno(), 10, True)
made.close()
os.dup2(10, 3, True)
os.close(10)
os.environ.update(LISTEN_PID=str(os.getpid() + (kind == "other")), LISTEN_FDS="2" if kind == "two" else "1", LISTEN_FDNAMES="node")
os.execvp(command[0], command)
"""


def starter(kind):
    return [sys.executable, "-c", STARTER, kind]


def works(t, address):
    result = t.ifunc("send", ECHO, address, "--payload", "x", "--raw", "--timeout", "20000")
    assert (result.code, result.out) == (0, "x"), result


def variables_of(pid):
    return pathlib.Path(f"/proc/{pid}/environ").read_bytes()


def test_a_node_listens_at_the_socket_that_it_was_given(t):
    node = t.serve(prefix=starter("one"))
    works(t, node.address)
    assert node.stop() == 0, node.err


def test_neither_cells_nor_their_environment_have_it(t):
    node = t.serve("--isolate", "all", prefix=starter("one"))
    works(t, node.address)
    cells = [cell for task in pathlib.Path(f"/proc/{node.pid}/task").iterdir() for cell in (task / "children").read_text().split()]
    assert cells
    sockets = {os.readlink(f"/proc/{node.pid}/fd/3")}
    for cell in cells:
        assert b"LISTEN_" not in variables_of(cell)
        found = {os.readlink(file) for file in pathlib.Path(f"/proc/{cell}/fd").iterdir()}
        assert not sockets & found, found
    assert node.stop() == 0, node.err


def test_a_supervisor_gives_it_to_each_node(t):
    supervisor = t.serve("--supervise", prefix=starter("one"))
    address = supervisor.address
    works(t, address)
    children = lambda: pathlib.Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text().split()
    first = children()[0]
    os.kill(int(first), signal.SIGKILL)
    kit.run_until(lambda: children() and children()[0] != first, "there is another node")
    works(t, address)
    assert supervisor.stop() == 0, supervisor.err


def test_a_node_that_is_told_where_to_listen_listens_there(t):
    node = t.serve("--listen", "127.0.0.1:0", prefix=starter("one"))
    works(t, node.address)
    assert node.stop() == 0, node.err


def test_a_socket_for_another_process_is_left_alone(t):
    node = t.serve(prefix=starter("other"))
    works(t, node.address)
    assert node.stop() == 0, node.err


@pytest.mark.parametrize(
    "kind, words",
    [("deaf", "does not listen"), ("unix", "when one of TCP is needed"), ("datagram", "when one of TCP is needed"),
     ("two", "2 sockets were given (LISTEN_FDS: node) when a node takes one")],
    ids=["deaf", "unix", "datagram", "two"],
)
def test_what_is_no_listening_tcp_socket_is_an_error(t, kind, words):
    result = kit.run(*starter(kind), kit.IFUNC, "serve", env=kit.TCP)
    assert result.code == 2 and words in result.err, result
