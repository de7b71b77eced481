# SPDX-License-Identifier: Apache-2.0
"""`ifunc cluster`: nodes that live exactly as long as a command."""

import os
import pathlib
import signal
import struct
import subprocess
import time

import kit


def nodes_of(pid):
    """Processes below `pid` that serve."""
    listing = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    return [int(row[0]) for row in rows if len(row) == 3 and int(row[1]) == pid and " serve" in row[2]]


def arguments_of(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_text()


def all_gone(pids):
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def has_ended(pid):
    """Also when nobody has waited for it yet."""
    try:
        return "State:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


def start_cluster(t, *arguments):
    """A cluster that is ready, with a command that sleeps; and its nodes."""
    flag = t.path("up")
    cluster = t.start(kit.IFUNC, "cluster", *arguments, "--", "sh", "-c", f"echo $TC_CLUSTER_ADDRESSES >{flag}; exec sleep 600")
    kit.run_until(lambda: os.path.exists(flag) and os.path.getsize(flag) or not cluster.running(), "cluster ready")
    assert cluster.running(), cluster.err
    return cluster, nodes_of(cluster.pid)


def test_the_command_finds_nodes_by_number(t):
    whoami = t.build("whoami.c")
    script = f'for i in 0 1 2; do {kit.IFUNC} send {whoami} $i --raw; echo; done; echo "$TC_CLUSTER_SIZE"'
    result = t.ifunc("cluster", "3", "--", "sh", "-c", script, seconds=60)
    assert result.out == "0 of 3\n1 of 3\n2 of 3\n3\n", result


def test_addresses_are_in_the_environment(t):
    result = t.ifunc("cluster", "2", "--", "sh", "-c", "echo $TC_CLUSTER_ADDRESSES")
    addresses = result.out.strip().split(",")
    assert len(addresses) == 2 and all(a.startswith("127.0.0.1:") for a in addresses), result


def test_the_exit_code_is_the_commands(t):
    assert t.ifunc("cluster", "1", "--", "true").code == 0
    assert t.ifunc("cluster", "1", "--", "sh", "-c", "exit 37").code == 37
    assert t.ifunc("cluster", "1", "--", "sh", "-c", "kill -9 $$").code == 128 + 9
    result = t.ifunc("cluster", "1", "--", "/no/such/program")
    assert result.code == 127 and "/no/such/program" in result.err, result


def test_a_number_beyond_the_cluster_is_refused(t):
    hello = t.build("hello.c")
    result = t.ifunc("cluster", "2", "--", kit.IFUNC, "send", hello, "2")
    assert result.code == 1 and "no node 2" in result.err, result
    assert t.ifunc("send", hello, "2").code == 2


def test_an_ifunc_is_forwarded_round_the_cluster(t):
    hop = t.build("hop.c")
    result = t.ifunc("cluster", "3", "--", kit.IFUNC, "send", hop, "0", "--payload", "1201202", seconds=60)
    assert (result.code, result.out) == (0, "2"), result


def test_an_ifunc_that_a_node_knows_is_injected(t):
    relay, count = t.build("relay.c"), t.build("count.c")
    counter = t.write("counter", bytes(8))
    script = (f"{kit.IFUNC} send {relay} 0 --payload 1 && for i in $(seq 100); do "
              f"[ \"$(od -An -tu8 {counter} | tr -d ' ')\" = 1 ] && exit 0; sleep 0.05; done; exit 9")
    result = t.ifunc("cluster", "2", "--ifunc", count, "--data", f"counter={counter}", "--", "sh", "-c", script,
                     seconds=60)
    assert result.code == 0, result
    assert pathlib.Path(counter).read_bytes() == struct.pack("<Q", 1)


def test_nodes_have_the_threads_that_the_cluster_is_given(t):
    send = f"{kit.IFUNC} send {t.build('meet.c')} 0 --hex 02"
    meeting = t.write("meeting", bytes(8))
    result = t.ifunc("cluster", "1", "--threads", "3", "--data", f"meeting={meeting}", "--", "sh", "-c",
                     f"{send} & other=$!; {send} && wait $other", seconds=60)
    assert result.code == 0, result


def test_all_nodes_end_with_the_command(t):
    out = t.path("pids")
    result = t.ifunc("cluster", "2", "--", "sh", "-c", f"pgrep -P $PPID -f ' [s]erve --' > {out}")
    pids = [int(pid) for pid in pathlib.Path(out).read_text().split()]
    assert result.code == 0 and len(pids) == 2, result
    assert all_gone(pids)


def test_sigterm_and_sigint_end_command_and_nodes(t):
    for number in [signal.SIGTERM, signal.SIGINT]:
        cluster, nodes = start_cluster(t, "2")
        os.unlink(t.path("up"))
        assert len(nodes) == 2
        cluster.signal(number)
        assert cluster.wait() == 128 + number
        kit.run_until(lambda: all_gone(nodes), "nodes gone")


def test_nodes_do_not_outlive_a_cluster_that_is_killed(t):
    cluster, nodes = start_cluster(t, "2")
    cluster.process.kill()
    cluster.wait()
    kit.run_until(lambda: all_gone(nodes), "nodes gone")


def test_a_second_signal_kills_nodes_that_do_not_stop(t):
    cluster, nodes = start_cluster(t, "2", "--drain", "600000")
    os.kill(nodes[0], signal.SIGSTOP)
    cluster.signal(signal.SIGTERM)
    kit.run_until(lambda: has_ended(nodes[1]), "the other node ended")
    cluster.signal(signal.SIGTERM)
    cluster.wait()
    kit.run_until(lambda: all_gone(nodes), "nodes gone")
    assert "killed" in cluster.err, cluster.err


def test_a_node_that_does_not_listen_to_sigterm_is_killed_in_time(t):
    cluster, nodes = start_cluster(t, "2", "--drain", "1000")
    os.kill(nodes[0], signal.SIGSTOP)
    start = time.monotonic()
    cluster.signal(signal.SIGTERM)
    cluster.wait()
    assert time.monotonic() - start < 8 * kit.slowness()
    kit.run_until(lambda: all_gone(nodes), "nodes gone")
    assert "killed" in cluster.err, cluster.err


def test_a_node_that_dies_is_reported_with_its_last_words(t):
    cluster, nodes = start_cluster(t, "2")
    os.kill(nodes[1], signal.SIGKILL)
    kit.run_until(lambda: "node 1 died with exit code 137" in cluster.err, "report of the death")


def test_a_node_that_dies_is_started_again_where_it_was_and_the_others_find_it(t):
    hop, cluster = t.build("hop.c"), start_cluster(t, "3", "--restart")[0]
    addresses = pathlib.Path(t.path("up")).read_text().strip().split(",")

    def goes_round():
        return t.ifunc("send", hop, addresses[0], "--payload", "1201202").out == "2"
    assert goes_round()
    for deaths in (1, 2):
        victim = next(pid for pid in nodes_of(cluster.pid) if "\0--id=1\0" in arguments_of(pid))
        os.kill(victim, signal.SIGKILL)
        kit.run_until(lambda deaths=deaths: cluster.err.count("node 1 is started again in") == deaths, "its death is reported")
        kit.run_until(goes_round, "it is there again")  # the first call may find the connection that ended
    assert cluster.err.count("died with exit code 137") == 2, cluster.err


def test_a_node_that_is_about_to_be_started_again_does_not_hold_up_the_end(t):
    cluster, nodes = start_cluster(t, "2", "--restart")
    for _ in range(3):
        victim = kit.run_until(lambda: next((pid for pid in nodes_of(cluster.pid) if pid != nodes[0]), None), "a second node")
        os.kill(victim, signal.SIGKILL)
        kit.run_until(lambda victim=victim: all_gone([victim]), "it is gone")
    kit.run_until(lambda: cluster.err.count("node 1 is started again in") == 3, "the third death is reported")
    cluster.signal(signal.SIGTERM)
    assert cluster.wait() == 128 + signal.SIGTERM
    assert nodes_of(cluster.pid) == []


def test_nodes_that_cannot_start_end_the_cluster_with_their_reason(t):
    result = t.ifunc("cluster", "2", "--data", "x=/no/such/file", "--", "true")
    assert result.code == 1 and "/no/such/file" in result.err, result


def test_no_command_is_wrong_usage(t):
    assert t.ifunc("cluster", "2").code == 2
    assert t.ifunc("cluster", "0", "--", "true").code == 2
