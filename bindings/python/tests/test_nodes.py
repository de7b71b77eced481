# SPDX-License-Identifier: Apache-2.0
"""Nodes that die, and what users hear of it; closing; progress."""

import asyncio
import sys
import threading
import time

import pytest
import threechains as tc

CRASH = """
#include <threechains/ifunc.h>
void crash_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)size, (void)target_args;
  *(volatile int *)0 = 1;
}
"""

LINGER = """
#include <threechains/ifunc.h>
void linger_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)size, (void)target_args;
  size_t room;
  volatile unsigned char *flag = tc_data("flag", &room);
  *flag = 1;
  while (*flag == 1) continue;
}
"""


@pytest.fixture(scope="module")
def crash():
    return tc.ifunc.from_c(CRASH)


def node_of(future):
    return int.from_bytes(bytes(future.result()), "little")


def kill(cluster, crash, number):
    with pytest.raises(tc.RemoteError):
        cluster.submit(crash, node=number).result()


def wait_until(condition, what):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def test_a_node_that_died_leaves_the_rotation_and_that_is_said(crash, who, caplog):
    with tc.LocalCluster(3) as cluster:
        kill(cluster, crash, 1)
        assert {node_of(cluster.submit(who)) for _ in range(9)} == {0, 2}
        assert cluster.alive == [0, 2] and len(cluster) == 3 and "gone: 1" in repr(cluster)
        assert "node 1 at" in caplog.text and "is gone" in caplog.text
        with pytest.raises(tc.Error) as raised:
            cluster.submit(who, node=1).result()
        assert "node 1" in str(raised.value)
        cluster.send(who)
        cluster.send(who)


def test_when_all_nodes_are_gone_the_error_says_what_they_died_of(crash, who):
    with tc.LocalCluster(2) as cluster:
        for number in range(2):
            kill(cluster, crash, number)
        wait_until(lambda: cluster.log().count("died with exit code") == 2, "the deaths are reported")
        with pytest.raises(tc.Error, match="no node can be reached.*'crash'") as raised:
            cluster.submit(who)
        assert raised.value.status == tc.Status.DISCONNECTED and cluster.alive == []


def test_the_log_of_a_node_has_its_last_words_and_not_those_of_others(crash):
    with tc.LocalCluster(2) as cluster:
        kill(cluster, crash, 1)
        wait_until(lambda: "node 1 died with exit code" in cluster.log(1), "its death is reported")
        assert "ifunc 'crash'" in cluster.log(1) and cluster.log(0) == ""
        assert cluster.log(1) in cluster.log()
        for node in (2, 9, -1):
            with pytest.raises(tc.ArgumentIndexError, match=f"no node {node}: .* give a number from 0 to 1, or None for all nodes"):
                cluster.log(node)
        for node in ("0", 1.0, True):
            with pytest.raises(tc.ArgumentTypeError, match="no number of a node, but a (str|float|bool): give .* 0 to 1, or None for all"):
                cluster.log(node)
    with pytest.raises(tc.Error, match="this cluster is closed"):
        cluster.log(1)


def test_a_cluster_that_restarts_nodes_has_them_in_the_rotation_again(crash, who, caplog):
    with tc.LocalCluster(2, restart=True) as cluster:
        for _ in range(2):
            kill(cluster, crash, 1)
            assert [node_of(cluster.submit(who)) for _ in range(3)] == [0, 0, 0]
            wait_until(lambda: cluster.alive == [0, 1], "the node is there again")
            wait_until(lambda: node_of(cluster.submit(who)) == 1, "it gets calls")
        assert caplog.text.count("can be reached again") >= 2


def test_a_node_of_others_is_found_again_when_it_comes_back(who, echo):
    node = tc.Node(listen="127.0.0.1:0")
    address = node.address
    with tc.Cluster([address]) as cluster:
        assert bytes(cluster.submit(echo, b"x").result()) == b"x"
        node.close()
        wait_until(lambda: cluster.alive == [], "it is gone")
        with pytest.raises(tc.Error, match="no node can be reached|gone"):
            cluster.submit(echo, b"x").result()
        with tc.Node(listen=address):
            wait_until(lambda: cluster.alive == [0], "it is there again")
            wait_until(lambda: not cluster[0]._is_lost, "and known to be")
            assert bytes(cluster.submit(echo, b"y").result()) == b"y"


def test_a_wait_that_is_over_says_for_what(cluster, slow):
    future = cluster.submit(slow, (300_000_000).to_bytes(8, "little"))
    with pytest.raises(TimeoutError, match="ifunc 'slow' has not answered within 0.001 s"):
        future.result(0.001)
    with pytest.raises(TimeoutError, match="'slow'"):
        future.exception(0.001)
    assert future.result() is not None


def test_what_is_no_list_of_addresses_or_no_names_of_data_is_refused_with_what_to_write():
    with pytest.raises(TypeError, match=r"as \['127.0.0.1'\]"):
        tc.Cluster("127.0.0.1")
    with pytest.raises(TypeError, match='list.*{"prices": prices}'):
        tc.LocalCluster(1, data=[1, 2])


def test_a_cluster_is_an_asynchronous_context_as_well(who):
    async def ask():
        async with tc.LocalCluster(1) as cluster:
            return bytes(await cluster.submit(who)), cluster

    answer, cluster = asyncio.run(ask())
    assert answer == bytes(4) and len(cluster) == 0


@pytest.mark.parametrize("node", [2, -1, 10**30])
def test_a_number_that_no_node_has_is_refused_with_those_that_there_are(cluster, echo, node):
    for ask in (cluster.submit, cluster.send):
        with pytest.raises(IndexError, match=f"no node {node}: .* has 2 nodes; give a number from 0 to 1, or None") as raised:
            ask(echo, b"x", node=node)
        assert isinstance(raised.value, tc.ArgumentIndexError) and raised.value.parameter == "node"


@pytest.mark.parametrize("node", [0.5, "0", [0], True, False])
def test_what_is_no_number_of_a_node_is_refused(cluster, echo, node):
    for ask in (cluster.submit, cluster.send):
        with pytest.raises(TypeError, match="no number of a node, but a (float|str|list|bool): give .* 0 to 1") as raised:
            ask(echo, b"x", node=node)
        assert isinstance(raised.value, tc.ArgumentTypeError) and raised.value.parameter == "node"


def test_a_number_of_a_node_may_be_numpys(cluster, who):
    numpy = pytest.importorskip("numpy")
    assert cluster.submit(who, node=numpy.int64(1)).result() == bytes([1, 0, 0, 0])
    with pytest.raises(tc.ArgumentTypeError, match="but a bool"):
        cluster.submit(who, node=numpy.True_)


def test_an_endpoint_that_there_is_not_is_refused_with_how_many_there_are(cluster, who):
    assert cluster[-1] is cluster[1]
    with pytest.raises(IndexError, match="no node 2: the cluster has 2 nodes") as raised:
        cluster[2]
    assert isinstance(raised.value, tc.ArgumentIndexError)
    for key in ("a", 1.0, None):
        with pytest.raises(TypeError, match="is no number of a node; give a whole number, as cluster\\[0\\]") as caught:
            cluster[key]
        assert isinstance(caught.value, tc.ArgumentTypeError) and caught.value.parameter == "number"
    with tc.Node() as server, tc.Cluster([server.address]) as one, pytest.raises(IndexError, match="give 0, its only one"):
        one.submit(who, node=1)


def test_map_shows_its_progress_when_it_is_asked_to(cluster, echo, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert len(list(cluster.map(echo, [b"x"] * 5))) == 5
    assert capsys.readouterr().err == "", "standard error is no terminal"
    assert len(list(cluster.map(echo, [b"x"] * 5, progress=True))) == 5
    shown = capsys.readouterr().err
    assert shown.startswith("\recho: 0 of 5, ") and "\recho: 5 of 5, " in shown and shown.endswith(" s\n")
    assert len(list(cluster.map(echo, [b"x"] * 5, progress=False))) == 5
    assert capsys.readouterr().err == ""


def test_map_shows_its_progress_by_tqdm_where_that_is_installed(cluster, echo, capsys):
    pytest.importorskip("tqdm")
    assert len(list(cluster.map(echo, [b"x"] * 5, progress=True))) == 5
    assert "echo: 100%" in capsys.readouterr().err


def test_closing_says_that_it_waits_for_calls(caplog, tmp_path):
    path = tmp_path / "flag"
    path.write_bytes(bytes(4))
    linger = tc.ifunc.from_c(LINGER)
    cluster = tc.LocalCluster(1, data={"flag": path})
    cluster.send(linger)
    wait_until(lambda: path.read_bytes()[0] == 1, "it runs")
    closing = threading.Thread(target=cluster.close)
    closing.start()
    try:
        wait_until(lambda: "close() waits for calls" in caplog.text, "it says that it waits")
    finally:
        with open(path, "r+b") as file:
            file.write(b"\2")
    closing.join()
    assert "killed" not in caplog.text
