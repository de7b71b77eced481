# SPDX-License-Identifier: Apache-2.0
"""Which doors a node opens: its own, and no others."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import harness

LISTEN, UNCONNECTED = "0A", "07"


def internet_sockets(pid):
    """Local addresses of the process's TCP sockets that listen, and of its UDP sockets that take from anybody."""
    inodes = set()
    for descriptor in os.scandir(f"/proc/{pid}/fd"):
        link = os.readlink(descriptor.path)
        if link.startswith("socket:["):
            inodes.add(link[len("socket:["):-1])
    found = []
    for table in ["tcp", "tcp6", "udp", "udp6"]:
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and fields[3] in (LISTEN, UNCONNECTED):
                host, port = fields[1].split(":")
                found.append((table, host, int(port, 16)))
    return found


def test_a_default_node_listens_on_its_own_address_and_nowhere_else(t):
    node = t.serve("--listen", "127.0.0.1:0")
    port = int(node.address.rsplit(":", 1)[1])
    assert internet_sockets(node.pid) == [("tcp", "0100007F", port)], internet_sockets(node.pid)


if __name__ == "__main__":
    harness.main(globals())
