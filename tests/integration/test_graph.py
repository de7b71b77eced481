# SPDX-License-Identifier: Apache-2.0
"""The graph example: searches over sharded graphs, compared with networkx, and what can go wrong on the way."""

import json
import os
import pathlib
import signal
import sys

import pytest

import kit
from kit import BUILD, ROOT, SHM, TCP

pytestmark = pytest.mark.unfreed

# Debian's package is for Debian's interpreter; another one may run this.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import networkx
except ImportError:
    networkx = None

TOOLS = BUILD / "examples/06-graph"
IFUNCS = str(BUILD / "ifuncs")
FLIGHTS = str(ROOT / "examples/data/flights-airport.csv")


def need(*names):
    for name in names:
        if not (TOOLS / name).exists():
            pytest.skip(f"{name} is not built")


def make_shards(t, edges, count, *options):
    """A directory with the shards, and the memory that a search needs."""
    need("make_shards", "bfs", "sample")
    directory = t.path(f"shards{count}-{len(os.listdir(t.directory))}")
    result = t.run(str(TOOLS / "make_shards"), *options, edges, str(count), directory)
    assert result.code == 0, result
    facts = dict(line.split() for line in result.out.splitlines())
    return directory, facts["scratch"]


def cluster(t, shards, scratch, count, command, env=SHM):
    return t.ifunc("cluster", str(count), "--data", f"graph={shards}/{{id}}.shard:ro", "--scratch", f"scratch={scratch}",
                   "--", "sh", "-c", command, env=env, seconds=60)


def search(t, shards, scratch, count, sources, env=SHM, named=True):
    """The levels of what each source reaches, by the vertices' names. Each answer is checked by the driver as well."""
    names = f"--shards {shards}" if named else ""
    command = " && ".join(f"{TOOLS}/bfs --ifuncs {IFUNCS} {names} --levels {t.path(f'levels.{i}')} {source}"
                          for i, source in enumerate(sources))
    result = cluster(t, shards, scratch, count, command, env)
    assert result.code == 0, result
    assert result.out.count("checked: every edge agrees") == (len(sources) if named else 0), result
    return [{line.split()[0]: int(line.split()[1]) for line in pathlib.Path(t.path(f"levels.{i}")).read_text().splitlines()}
            for i in range(len(sources))]


def flights():
    if networkx is None:
        pytest.skip("networkx is not installed (python3-networkx)")
    lines = pathlib.Path(FLIGHTS).read_text().splitlines()[1:]
    return networkx.DiGraph([tuple(line.split(",")[:2]) for line in lines])


def compare_flights(t, count, env=SHM):
    graph = flights()
    sources = ["SEA", "ATL", "BTM", "ADK"]
    shards, scratch = make_shards(t, FLIGHTS, count, "--skip-lines", "1")
    for source, levels in zip(sources, search(t, shards, scratch, count, sources, env)):
        assert levels == networkx.single_source_shortest_path_length(graph, source), source


def test_flights_from_one_server_are_as_networkx_finds_them(t):
    compare_flights(t, 1)


def test_flights_from_three_servers_are_as_networkx_finds_them(t):
    compare_flights(t, 3)


def test_flights_from_four_servers_over_tcp_are_as_networkx_finds_them(t):
    compare_flights(t, 4, TCP)


def test_generated_graphs_are_searched_as_networkx_does(t):
    if networkx is None:
        pytest.skip("networkx is not installed (python3-networkx)")
    need("make_graph")
    for seed, count in [("1", 3), ("2", 4)]:
        made = t.run(str(TOOLS / "make_graph"), "--scale", "11", "--edge-factor", "4", "--seed", seed)
        assert made.code == 0 and made.out.count("\n") == 4 << 11, made.err
        edges = [tuple(line.split()) for line in made.out.splitlines()]
        shards, scratch = make_shards(t, t.write(f"edges{seed}", made.out), count, "--numbered", "--vertices", "2048")
        sources = sorted({a for a, _ in edges})[:3]
        for source, levels in zip(sources, search(t, shards, scratch, count, sources)):
            assert levels == networkx.single_source_shortest_path_length(networkx.DiGraph(edges), source), source


def test_the_same_seed_gives_the_same_graph(t):
    need("make_graph")
    graphs = [t.run(str(TOOLS / "make_graph"), "--scale", "8", "--seed", seed).out for seed in "112"]
    assert graphs[0] == graphs[1] != graphs[2]


def test_a_vertex_without_edges_reaches_itself_alone(t):
    shards, scratch = make_shards(t, t.write("edges", "0 1\n1 2\n"), 3, "--numbered", "--vertices", "7")
    assert search(t, shards, scratch, 3, ["5", "0"]) == [{"5": 0}, {"0": 0, "1": 1, "2": 2}]


def test_a_long_way_has_as_many_levels(t):
    edges = t.write("edges", "".join(f"v{i} v{i + 1}\n" for i in range(200)))
    shards, scratch = make_shards(t, edges, 3)
    assert search(t, shards, scratch, 3, ["v0"]) == [{f"v{i}": i for i in range(201)}]


def test_a_source_that_does_not_exist_is_named(t):
    shards, scratch = make_shards(t, FLIGHTS, 2, "--skip-lines", "1")
    result = cluster(t, shards, scratch, 2, f"{TOOLS}/bfs --ifuncs {IFUNCS} --shards {shards} XYZ")
    assert result.code == 1 and "no vertex of the 305 is called 'XYZ'" in result.err, result
    result = cluster(t, shards, scratch, 2, f"{TOOLS}/bfs --ifuncs {IFUNCS} 305")
    assert result.code == 1 and "there is no vertex 305: the graph has 305" in result.err, result


def test_servers_that_hold_something_else_are_refused(t):
    shards, scratch = make_shards(t, FLIGHTS, 3, "--skip-lines", "1")
    bfs = f"{TOOLS}/bfs --ifuncs {IFUNCS} 0"
    result = cluster(t, shards, scratch, 2, bfs)
    assert result.code == 1 and "holds shard 0 of 3" in result.err, result
    result = cluster(t, shards, "64", 3, bfs)
    assert result.code == 1 and "too little memory for a search" in result.err, result
    for i in range(3):
        pathlib.Path(shards, f"{i}.shard").write_bytes(b"no shard at all" * 100)
    result = cluster(t, shards, scratch, 3, bfs)
    assert result.code == 1 and "no shard of a graph" in result.err, result


def start_servers(t, shards, scratch, count):
    """Nodes of a cluster, each a process of the test's own, so that one can be killed."""
    addresses = kit.free_addresses(count)
    nodes = [t.serve_member(addresses, i, "--name", f"server{i}", "--data", f"graph={shards}/{i}.shard:ro", "--scratch",
                            f"scratch={scratch}", env=SHM) for i in range(count)]
    return nodes, ",".join(addresses)


def start_long_search(t, *options):
    """A search of so many levels that it still runs when something is done to a server. The servers and the driver."""
    edges = t.write("edges", "".join(f"{i} {i + 1}\n" for i in range(1_000_000)))
    shards, scratch = make_shards(t, edges, 3, "--numbered")
    nodes, addresses = start_servers(t, shards, scratch, 3)
    driver = t.start(str(TOOLS / "bfs"), "--servers", addresses, "--ifuncs", IFUNCS, *options, "0", env=SHM)
    # The driver's first lines, a buffer full of them, come after some fifty levels.
    kit.run_until(lambda: driver.out or not driver.running(), "search begun", 20)
    assert driver.running(), driver.err
    return nodes, driver


def test_a_server_killed_in_the_middle_of_a_search_is_named(t):
    nodes, driver = start_long_search(t)
    nodes[1].signal(signal.SIGKILL)
    assert driver.wait(15) == 1
    assert "server 1" in driver.err, driver.err


def test_a_server_that_stands_still_is_named_at_the_deadline(t):
    # The deadline is for the search as a whole, which must still run when the server is stopped.
    nodes, driver = start_long_search(t, "--deadline", str(int(3000 * kit.slowness())))
    nodes[1].signal(signal.SIGSTOP)
    assert driver.wait(30) == 1
    nodes[1].signal(signal.SIGCONT)
    assert "server " in driver.err and "deadline" in driver.err, driver.err


def test_bad_lines_are_named_with_file_and_line(t):
    need("make_shards")
    cases = [("a b\nc\n", [], ":2: an edge needs two vertices, and here is one: 'c'"),
             ("0 1\n1 x\n", ["--numbered"], ":2: not a vertex's number"),
             ("0 1\n\n1 -2\n", ["--numbered"], ":3: not a vertex's number"),
             ("0 99999999999\n", ["--numbered"], ":1: a vertex's number is larger than any can be"),
             ("0 99999999999999999999999\n", ["--numbered"], ":1: a vertex's number is larger than any can be"),
             ("0 7\n", ["--numbered", "--vertices", "7"], ":1: a vertex's number is not below --vertices: '7'"),
             ("a b\n" + "x" * 256 + " b\n", [], ":2: a vertex has a name of more than 255 bytes"),
             ("a b\n" + "x y " * 2000 + "\n", [], ":2: a line of more than 4095 bytes"),
             ("a b\nc\0d e\n", [], ":2: a zero byte")]
    for text, options, expected in cases:
        path = t.write("edges", text)
        result = t.run(str(TOOLS / "make_shards"), *options, path, "2", t.path("out"))
        assert result.code == 1 and path + expected in result.err, (text[:40], result)
    for path, expected in [(t.write("none", "# nothing\n\n"), "has no edges"), (t.path("missing"), "No such file")]:
        result = t.run(str(TOOLS / "make_shards"), path, "2", t.path("out"))
        assert result.code == 1 and expected in result.err, result
    for arguments in [[], [FLIGHTS, "0", "x"], [FLIGHTS, "x", "x"], [FLIGHTS, "1025", "x"], ["--what", FLIGHTS, "1", "x"]]:
        assert t.run(str(TOOLS / "make_shards"), *arguments).code == 2, arguments


def test_a_sample_is_reproducible_and_every_edge_of_it_exists(t):
    edges = {tuple(line.split(",")[:2]) for line in pathlib.Path(FLIGHTS).read_text().splitlines()[1:]}
    answers = []
    for count, seeds in [(3, [1, 1, 2]), (4, [1])]:
        shards, scratch = make_shards(t, FLIGHTS, count, "--skip-lines", "1")
        command = " && echo next && ".join(
            f"{TOOLS}/sample --ifuncs {IFUNCS} --shards {shards} --hops 3 --fan 4 --seed {seed} SEA" for seed in seeds)
        result = cluster(t, shards, scratch, count, command)
        assert result.code == 0, result
        answers += result.out.split("next\n")
    assert answers[0] == answers[1] == answers[3] != answers[2], answers
    lines = [line.split() for line in answers[0].splitlines()]
    assert [a for hop, a, _ in lines if hop == "1"] == ["SEA"] * 4
    assert len(lines) == len({tuple(line) for line in lines}) and len(lines) > 20
    for hop, a, b in lines:
        assert (a, b) in edges, (a, b)
        assert hop == "1" or any(c == a and int(before) == int(hop) - 1 for before, _, c in lines), (hop, a, b)


def test_a_sample_of_everything_is_everything(t):
    """With room for all neighbours, one hop gives the vertex's row."""
    shards, scratch = make_shards(t, FLIGHTS, 3, "--skip-lines", "1")
    result = cluster(t, shards, scratch, 3,
                     f"{TOOLS}/sample --ifuncs {IFUNCS} --shards {shards} --hops 1 --fan 1000 SEA")
    expected = {line.split(",")[1] for line in pathlib.Path(FLIGHTS).read_text().splitlines() if line.startswith("SEA,")}
    assert {line.split()[2] for line in result.out.splitlines()} == expected, result


def test_a_sample_that_is_too_large_says_so(t):
    shards, scratch = make_shards(t, FLIGHTS, 3, "--skip-lines", "1")
    result = cluster(t, shards, scratch, 3, f"{TOOLS}/sample --ifuncs {IFUNCS} --shards {shards} --hops 4 --fan 99 SEA")
    assert result.code == 1 and "more than 4096 edges" in result.err, result


def bench(t, *options):
    result = t.ifunc("bench", "graph", "--json", "--runs", "2", "--searches", "2", *options, seconds=100)
    assert result.code == 0, result
    return json.loads(result.out)


def test_the_benchmark_measures_both_ways_and_verifies_every_search(t):
    for transport, servers, more in [("shm", 3, []), ("tcp", 2, ["--loopback"])]:
        answer = bench(t, "--transport", transport, "--servers", str(servers), "--scale", "8", *more)
        assert answer["bench"] == "graph" and answer["verified"] is True, answer
        assert (answer["transport"], answer["servers"]) == (transport, servers), answer
        # Warm-up and two runs, of two searches each, in four ways.
        assert answer["searches_verified"] == 3 * 2 * 4 and answer["vertices"] == 256, answer
        assert all(answer[mode]["searches_per_s"] > 0 for mode in ["ifunc", "ifunc_collected", "get", "get_indexed"])
        assert answer["bytes_moved"]["ifunc"]["between_servers"] > 0 == answer["bytes_moved"]["get"]["between_servers"]


def test_the_benchmark_searches_the_shards_that_it_is_given(t):
    shards, _ = make_shards(t, FLIGHTS, 2, "--skip-lines", "1")
    answer = bench(t, "--transport", "shm", "--servers", "2", "--shards", shards)
    assert (answer["vertices"], answer["edges"], answer["verified"]) == (305, 5366, True), answer
    result = t.ifunc("bench", "graph", "--transport", "shm", "--servers", "1", "--shards", shards)
    assert result.code == 1 and "part 0 of 2 when it is to be part 0 of 1" in result.err, result
