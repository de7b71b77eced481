# SPDX-License-Identifier: Apache-2.0
"""How the nodes of a cluster find each other: by PMIx under mpirun, and by a rendezvous directory."""

import os
import pathlib
import re
import shutil
import signal

import pytest

import kit
from kit import TCP

pytestmark = pytest.mark.unfreed

MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe")


def need_mpirun():
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun (openmpi-bin) is not installed")
    if not (kit.BUILD / "lib/libthreechains_pmix.so").exists():
        pytest.skip("built without PMIx (libpmix-dev)")


def need_member():
    if not os.path.exists(kit.MEMBER):
        pytest.skip("tc_test_member is not built")


def ifuncs(t):
    """A directory with the ifuncs that members use."""
    directory = t.path("ifuncs")
    os.makedirs(directory)
    for source in ["whoami.c", "hop.c", "count.c"]:
        shutil.copy(t.build(source), directory)
    return directory


def links_of(text, count):
    """What the members printed: the links of each."""
    lines = re.findall(r"member (\d+) of (\d+): (\d+) links", text)
    assert sorted(int(number) for number, _, _ in lines) == list(range(count)), text
    assert all(int(total) == count for _, total, _ in lines), text
    return {int(number): int(links) for number, _, links in lines}


def check_links(links):
    """Node 0 talked to all; each other one to node 0 and its two neighbours in the ring."""
    assert all(count <= 3 for number, count in links.items() if number != 0), links


def start_members(t, count, directory, *options, numbered=False, prefixes=None):
    """`count` members that meet in a directory."""
    code = ifuncs(t)
    return [t.start(*(prefixes[i] if prefixes else ()), kit.MEMBER, code, f"bootstrap=dir:{directory}",
                    *([f"id={i}"] if numbered else []), *options, env={"THREECHAINS_HOME": t.path("home")} | (TCP if prefixes else {})) for i in range(count)]


def wait_for_members(members):
    codes = [member.wait(60) for member in members]
    assert codes == [0] * len(members), [(code, member.err) for code, member in zip(codes, members)]
    return links_of("".join(member.out for member in members), len(members))


def answers(t, whoami, address):
    result = t.ifunc("send", whoami, address, "--raw")
    assert result.code == 0, result
    return result.out


# ---- PMIx


def test_a_program_under_mpirun_reaches_all_its_nodes(t):
    need_mpirun()
    need_member()
    result = t.run(*MPIRUN, "-n", "8", kit.MEMBER, ifuncs(t), "bootstrap=pmix", seconds=100)
    assert result.code == 0, result
    check_links(links_of(result.out, 8))


def test_mpirun_processes_without_shared_memory_are_encrypted_without_a_users_key(t):
    need_mpirun()
    need_member()
    result = t.run(*MPIRUN, "-n", "3", kit.MEMBER, ifuncs(t), "bootstrap=pmix", seconds=100,
                   env=TCP | {"THREECHAINS_HOME": t.path("home")})
    assert result.code == 0, result
    assert re.findall(r"reached (\d) by (\S+)", result.out) == [("1", "tls"), ("2", "tls")], result
    assert not os.path.exists(t.path("home")), "nobody made keys, and nothing was remembered"


def test_auto_is_pmix_under_mpirun_and_a_single_node_elsewhere(t):
    need_mpirun()
    need_member()
    code = ifuncs(t)
    result = t.run(*MPIRUN, "-n", "2", kit.MEMBER, code, "bootstrap=auto", seconds=60)
    assert result.code == 0, result
    links_of(result.out, 2)
    alone = t.run(kit.MEMBER, code, "bootstrap=auto")
    assert (alone.code, alone.out) == (0, "member 0 of 1: 0 links\n"), alone


def test_served_nodes_under_mpirun_answer_a_client_and_forward(t):
    need_mpirun()
    whoami, hop = t.build("whoami.c"), t.build("hop.c")
    job = t.start(*MPIRUN, "-n", "4", kit.IFUNC, "serve", "--bootstrap", "pmix")

    def ready():
        assert job.running(), job.err
        addresses = re.findall(r"ready (\S+)", job.out)
        return addresses if len(addresses) == 4 else None

    addresses = kit.run_until(ready, "four nodes ready")
    assert sorted(answers(t, whoami, a) for a in addresses) == [f"{i} of 4" for i in range(4)]
    result = t.ifunc("send", hop, addresses[0], "--payload", "3210123")
    assert (result.code, result.out) == (0, "3"), result
    job.signal(signal.SIGTERM)
    job.wait()


def test_a_node_that_does_not_come_to_its_pmix_job_is_named(t):
    need_mpirun()
    given_up = t.path("given-up")
    os.mkdir(given_up)
    late = f'if [ "$PMIX_RANK" = 2 ]; then while [ "$(ls {given_up} | wc -l)" != 2 ]; do sleep 0.1; done; ' \
           f"else {kit.IFUNC} serve --bootstrap pmix --bootstrap-timeout 1000; touch {given_up}/$PMIX_RANK; fi"
    result = t.run(*MPIRUN, "-n", "3", "sh", "-c", late)
    assert "node 2 of 3 did not appear in this PMIx job within 1000 ms" in result.err, result


def test_what_contradicts_the_launcher_is_refused(t):
    need_mpirun()
    for options, words in [(("--id", "5"), "rank"), (("--nodes", "7"), "launcher started 1 processes"),
                           (("--cluster", "a:1,b:2"), "both cluster and bootstrap")]:
        result = t.run(*MPIRUN, "-n", "1", kit.IFUNC, "serve", "--bootstrap", "pmix", *options)
        assert result.code != 0 and words in result.err, result


def test_without_a_launcher_pmix_is_a_clear_error(t):
    result = t.ifunc("serve", "--bootstrap", "pmix")
    assert result.code == 2 and "no PMIx launcher started this process" in result.err, result


def test_a_launcher_that_is_gone_is_a_clear_error(t):
    need_mpirun()
    environment = t.run(*MPIRUN, "-n", "1", "env").out
    left = dict(line.split("=", 1) for line in environment.splitlines() if line.startswith("PMIX_"))
    assert "PMIX_NAMESPACE" in left, environment
    result = t.ifunc("serve", "--bootstrap", "pmix", "--bootstrap-timeout", "3000", env=left)
    assert result.code == 1 and "connecting to the launcher" in result.err, result
    assert result.seconds < 10 * kit.slowness(), result


def test_a_launcher_that_hangs_is_given_up(t):
    need_mpirun()
    go, code, words = t.path("go"), t.path("code"), t.path("words")
    script = f"echo up; while [ ! -e {go} ]; do sleep 0.05; done; " \
             f"{kit.IFUNC} serve --bootstrap pmix --bootstrap-timeout 1000 2> {words}; echo code $? > {code}"
    job = t.start(*MPIRUN, "-n", "1", "sh", "-c", script)
    kit.run_until(lambda: "up" in job.out or not job.running(), "the job runs")
    job.signal(signal.SIGSTOP)
    t.write("go", "")
    kit.run_until(lambda: os.path.exists(code) and os.path.getsize(code) > 0, "the node gives up")
    assert pathlib.Path(code).read_text() == "code 1\n"
    assert "did not answer within 1000 ms" in pathlib.Path(words).read_text()


# ---- Rendezvous directory


def test_processes_without_numbers_meet_in_a_directory(t):
    need_member()
    directory = t.path("meet")
    members = start_members(t, 8, directory, "nodes=8")
    check_links(wait_for_members(members))
    assert os.listdir(directory) == [], "files that nobody took away"


def test_processes_with_numbers_meet_in_a_directory(t):
    need_member()
    links = wait_for_members(start_members(t, 3, t.path("meet"), "nodes=3", numbered=True))
    assert links[0] >= 2, links


def test_who_does_not_come_to_the_directory_is_named(t):
    directory = t.path("meet")
    nodes = [t.start(kit.IFUNC, "serve", "--bootstrap", f"dir:{directory}", "--nodes", "3", "--id", str(i),
                     "--bootstrap-timeout", "1500") for i in (0, 2)]
    for node in nodes:
        assert node.wait(20) == 1
        assert f"node 1 of 3 did not appear in {directory} within 1500 ms" in node.err, node.err


def test_a_node_that_waits_for_others_ends_when_asked_to(t):
    directory = t.path("meet")
    node = t.start(kit.IFUNC, "serve", "--bootstrap", f"dir:{directory}", "--nodes", "2")
    kit.run_until(lambda: os.path.exists(f"{directory}/node-0"), "the node waits", 20)
    node.signal(signal.SIGTERM)
    assert node.wait(5) == 128 + signal.SIGTERM


def test_a_directory_with_files_of_a_killed_run_serves_the_next_one(t):
    need_member()
    directory = t.path("meet")
    old = [t.start(kit.IFUNC, "serve", "--bootstrap", f"dir:{directory}", "--nodes", "3") for _ in range(3)]
    kit.run_until(lambda: all("ready" in node.out for node in old), "the old run is up", 20)
    for node in old:
        node.kill()
    left = {name: pathlib.Path(directory, name).read_text() for name in os.listdir(directory)}
    assert sorted(left) == ["node-0", "node-1", "node-2"], left
    alone = t.ifunc("serve", "--bootstrap", f"dir:{directory}", "--nodes", "3", "--bootstrap-timeout", "500")
    assert alone.code == 1 and "nodes 1 and 2 of 3 did not appear" in alone.err, alone
    assert "left over from a process that has ended" in alone.err, alone
    wait_for_members(start_members(t, 3, directory, "nodes=3"))


def test_junk_in_the_directory_is_no_node(t):
    directory = t.path("meet")
    t.write("meet/node-1", os.urandom(5000))
    t.write("meet/notes.txt", "not ours")
    result = t.ifunc("serve", "--bootstrap", f"dir:{directory}", "--nodes", "2", "--id", "0", "--bootstrap-timeout",
                     "500")
    assert result.code == 1 and "node 1 of 2 did not appear" in result.err, result
    need_member()
    wait_for_members(start_members(t, 2, directory, "nodes=2"))
    assert os.listdir(directory) == ["notes.txt"]


def test_a_second_node_with_a_number_that_lives_is_refused(t):
    directory = t.path("meet")
    options = ("--bootstrap", f"dir:{directory}", "--nodes", "1", "--id", "0")
    node = t.serve(*options)
    second = t.ifunc("serve", *options)
    assert second.code == 1 and "a living node has" in second.err and "node-0" in second.err, second
    assert answers(t, t.build("whoami.c"), node.address) == "0 of 1", "the first one is as before"
    assert node.stop() == 0 and os.listdir(directory) == []


def test_a_node_that_starts_again_finds_the_others(t):
    directory = t.path("meet")
    options = ("--bootstrap", f"dir:{directory}", "--nodes", "2")
    nodes = [t.start(kit.IFUNC, "serve", *options, "--id", str(i), kind=kit.Node) for i in range(2)]
    for node in nodes:
        node.wait_until_ready()
    nodes[1].kill()
    again = t.serve(*options, "--id", "1")
    result = t.ifunc("send", t.build("hop.c"), again.address, "--payload", "0")
    assert (result.code, result.out) == (0, "0"), result


def transports_of(members):
    """By which transports node 0 reached the others."""
    return re.findall(r"member 0 reached \d+ by (\S+)", "".join(member.out for member in members))


def test_nodes_on_different_hosts_are_encrypted_without_a_key_of_their_users(t):
    need_member()
    members = start_members(t, 3, t.path("meet"), "nodes=3", "listen=0.0.0.0:0", prefixes=[kit.inside(name) for name, _ in t.namespaces(3)])
    wait_for_members(members)
    assert transports_of(members) == ["tls", "tls"], [member.out for member in members]
    assert not os.path.exists(t.path("home")), "nobody made keys, and nothing was remembered"


def test_nodes_on_a_network_that_is_trusted_are_not_encrypted(t):
    need_member()
    members = start_members(t, 2, t.path("meet"), "nodes=2", "listen=0.0.0.0:0", "trust-network=10.99.0.0/16",
                            prefixes=[kit.inside(name) for name, _ in t.namespaces(2)])
    wait_for_members(members)
    assert transports_of(members) == ["tcp"], [member.out for member in members]


def test_a_stranger_who_knows_the_address_of_a_cluster_is_refused(t):
    places = [kit.inside(name) for name, _ in t.namespaces(2)]
    node = t.serve("--bootstrap", f"dir:{t.path('meet')}", "--nodes", "1", "--listen", "0.0.0.0:0", prefix=places[0])
    result = t.run(*places[1], kit.IFUNC, "send", t.build("whoami.c"), node.address,
                   env={"THREECHAINS_HOME": t.path("home-of-a-stranger")})
    assert result.code != 0 and result.out == "" and "ed25519:" in result.err, result
    assert node.running(), node.err


def test_a_directory_that_others_can_write_to_is_refused(t):
    directory = t.path("meet")
    os.mkdir(directory)
    os.chmod(directory, 0o777)
    result = t.ifunc("serve", "--bootstrap", f"dir:{directory}", "--nodes", "1")
    assert result.code == 2 and f"{directory} has mode 0777" in result.err and "chmod 700" in result.err, result
    assert os.listdir(directory) == []


def test_a_node_that_listens_everywhere_names_an_address_of_its_interface(t):
    (name, address), = t.namespaces(1)
    inside = kit.inside(name)
    options = ("--listen", "0.0.0.0:0")
    assert t.serve(*options, prefix=inside).address.startswith(address + ":")
    assert t.serve(*options, "--advertise", "front.example", prefix=inside).address.startswith("front.example:")
