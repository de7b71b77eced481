# SPDX-License-Identifier: Apache-2.0
"""Nodes that know each other by keys: key, keyring and trust_network are options like any other."""

import subprocess
import time

import pytest
import threechains as tc
from threechains import _tool


def ifunc(*arguments):
    return subprocess.run([_tool.command(), *map(str, arguments)], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def people():
    """Public keys by name; the private halves are in the home of the tests."""
    return {name: ifunc("key", "new", name).strip() for name in ("server", "ana", "eve")}


def test_a_node_serves_the_keys_of_its_keyring_and_no_others(tmp_path, people, echo):
    keyring = tmp_path / "keyring"
    ifunc("key", "trust", "ana", people["ana"], "--run", "any", "--keyring", keyring)
    with tc.Node(transport="tcp", key="server", keyring=str(keyring)) as server:
        with tc.Node(transport="tcp", key="ana") as ana, tc.Cluster([server.address], node=ana) as cluster:
            assert bytes(cluster.submit(echo, b"hello").result()) == b"hello"
        with tc.Node(transport="tcp", key="eve") as eve:
            with pytest.raises(tc.Error, match=f"{people['eve']} is in no line of the keyring of this node"):
                tc.Cluster([server.address], node=eve)


def test_code_that_nobody_signed_is_denied_as_an_exception(tmp_path, people, echo):
    keyring = tmp_path / "keyring"
    ifunc("key", "trust", "ana", people["ana"], "--keyring", keyring)
    with tc.Node(transport="tcp", key="server", keyring=str(keyring)) as server:
        with tc.Node(transport="tcp", key="ana") as ana, tc.Cluster([server.address], node=ana) as cluster:
            with pytest.raises(tc.RemoteError, match="has no signature of a key in the keyring"):
                cluster.submit(echo, b"hello").result()
            file = tmp_path / "echo.ifunc"
            echo.save(file)
            ifunc("sign", file, "--key", "ana")
            assert bytes(cluster.submit(tc.ifunc.load(file), b"hello").result()) == b"hello"


def test_a_revoked_key_is_out_once_the_keyring_was_read_again(tmp_path, people, echo):
    keyring = tmp_path / "keyring"
    ifunc("key", "trust", "ana", people["ana"], "--run", "any", "--keyring", keyring)
    with tc.Node(transport="tcp", key="server", keyring=str(keyring)) as server, tc.Node(transport="tcp", key="ana") as ana:
        with tc.Cluster([server.address], node=ana) as cluster:
            assert bytes(cluster.submit(echo, b"before").result()) == b"before"
            ifunc("key", "revoke", "ana", "--keyring", keyring)
            server.reload_keys()
            with pytest.raises(tc.Error, match="the key was revoked"):
                for _ in range(100):
                    cluster.submit(echo, b"after").result()
                    time.sleep(0.01)
        keyring.write_text("nonsense\n")
        with pytest.raises(tc.Error, match=f"{keyring}, line 1"):
            server.reload_keys()


@pytest.mark.parametrize("transport", ("tls", "tcp"))
def test_a_payload_that_sockets_carry_may_be_changed_as_soon_as_it_was_submitted(tmp_path, people, echo, transport):
    keyring = tmp_path / "keyring"
    ifunc("key", "trust", "ana", people["ana"], "--run", "any", "--keyring", keyring)
    trusted = {"trust_network": "127.0.0.0/8"} if transport == "tcp" else {}
    with tc.Node(transport="tcp", key="server", keyring=str(keyring), **trusted) as server:
        with tc.Node(transport="tcp", key="ana", **trusted) as ana, tc.Cluster([server.address], node=ana) as cluster:
            assert cluster[0].transport == transport
            payload = bytearray(1_000_003)
            futures = []
            for number in range(20):
                payload[:] = bytes([number]) * len(payload)
                futures.append(cluster.submit(echo, payload))
            for number, future in enumerate(futures):
                assert future.result() == bytes([number]) * len(payload)


def test_processes_of_a_trusted_network_need_no_key(echo):
    with tc.Node(transport="tcp", trust_network="127.0.0.0/8") as server:
        with tc.Node(transport="tcp", trust_network="127.0.0.0/8") as client:
            with tc.Cluster([server.address], node=client) as cluster:
                assert bytes(cluster.submit(echo, b"plain").result()) == b"plain"
