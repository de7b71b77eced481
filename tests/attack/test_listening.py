# SPDX-License-Identifier: Apache-2.0
"""Which doors a node opens: its own, and no others."""

import attack
import kit


def hexadecimal(host):
    """An IPv4 address as /proc/net/tcp writes it."""
    return bytes(reversed([int(part) for part in host.split(".")])).hex().upper()


def test_a_default_node_listens_on_its_own_address_and_nowhere_else(t):
    node = t.serve("--listen", "127.0.0.1:0")
    port = int(node.address.rsplit(":", 1)[1])
    assert attack.internet_sockets(node.pid) == [("tcp", "0100007F", port)], attack.internet_sockets(node.pid)


def test_a_default_node_never_loads_ucx(t):
    node = t.serve("--listen", "127.0.0.1:0")
    attack.answers_soon(t, node.address)
    attack.answers_soon(t, node.address, env=kit.SHM)
    loaded = {line.split()[-1] for line in node.maps().splitlines()}
    assert any("libthreechains" in name for name in loaded), loaded
    assert not [name for name in loaded if "libucp.so" in name or "libuct" in name], loaded


def ucx_ports(t, device):
    """(address of eth0, hosts of the listening sockets) of a node that was told to use UCX on that device."""
    attack.needs_ucx()
    (here, address), _ = t.namespaces(2)
    node = t.serve("--listen", f"{address}:0", "--trust", "any", "--transport", "ucx", "--ucx-devices", device,
                   prefix=kit.inside(here), env={"UCX_TLS": "tcp,self"})
    opened = attack.internet_sockets(node.pid)
    port = int(node.address.rsplit(":", 1)[1])
    ours = ("tcp", hexadecimal(address), port)
    assert ours in opened, opened
    ucx = [host for table, host, number in opened if (table, host, number) != ours]
    assert ucx, "UCX opened no port, so this test says nothing"
    return address, ucx


def test_ucx_opens_ports_on_the_named_interface_alone(t):
    address, opened = ucx_ports(t, "eth0")
    assert set(opened) == {hexadecimal(address)}, opened


def test_ucx_told_to_use_loopback_opens_no_port_to_the_network(t):
    _, opened = ucx_ports(t, "lo")
    assert set(opened) == {hexadecimal("127.0.0.1")}, opened


def test_ucx_without_named_interfaces_is_refused(t):
    attack.needs_ucx()
    result = t.ifunc("serve", "--transport", "ucx", env={"UCX_NET_DEVICES": None, "UCX_TLS": None}, seconds=10)
    assert result.code != 0 and "ucx-devices" in result.err, result
