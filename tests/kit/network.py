# SPDX-License-Identifier: Apache-2.0
"""Addresses and network namespaces."""

import os
import random
import shutil
import socket

import pytest

from .process import run, run_until


_reserved = []


def free_addresses(count):
    """Addresses for nodes that must know each other's beforehand; none that the system gives to whoever asks for any port.
    They are reserved while this process lives: a socket that does not listen keeps the port from all that do not allow it to
    be used again (SO_REUSEADDR), as nodes do, and we only afterwards."""
    addresses = []
    while len(addresses) < count:
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
        except OSError:
            one.close()
            continue
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _reserved.append(one)
        addresses.append(f"127.0.0.1:{one.getsockname()[1]}")
    return addresses


class Namespaces:
    """Network namespaces joined by a bridge. Needs root and the `ip` tool; skips the test without them."""

    def __init__(self, count):
        if os.geteuid() != 0:
            pytest.skip("network namespaces need root")
        if shutil.which("ip") is None:
            pytest.skip("the ip tool (iproute2) is not installed")
        tag = f"tc{os.getpid()}"
        self.names = [f"{tag}n{i}" for i in range(count)]
        self.addresses = [f"10.99.0.{i + 1}" for i in range(count)]
        self.bridge = f"{tag}b"

    def create(self):
        bridge = self.bridge
        steps = [f"ip netns add {bridge}", f"ip -n {bridge} link add br0 type bridge", f"ip -n {bridge} link set br0 up"]
        for i, (name, address) in enumerate(zip(self.names, self.addresses)):
            steps += [f"ip netns add {name}", f"ip -n {name} link set lo up",
                      f"ip -n {name} link add eth0 type veth peer name v{i} netns {bridge}",
                      f"ip -n {bridge} link set v{i} master br0 up",
                      f"ip -n {name} addr add {address}/24 dev eth0", f"ip -n {name} link set eth0 up"]
        for step in steps:
            result = run(*step.split())
            if result.code != 0:
                pytest.skip(f"network namespaces cannot be had here: `{step}` said {result.err.strip()}")
        # Until the kernel has seen that somebody is at the other end, UCX says that there is no such device.
        for name in self.names:
            run_until(lambda name=name: "state UP" in run("ip", "-n", name, "link", "show", "eth0").out,
                      f"eth0 of {name} running")

    def remove(self):
        for name in [*self.names, self.bridge]:
            run("ip", "netns", "del", name)


def inside(namespace):
    """What goes in front of a command that is to run in this network namespace."""
    return ("ip", "netns", "exec", namespace)
