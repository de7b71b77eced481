# SPDX-License-Identifier: Apache-2.0
"""What the tables say for given JSON, and which files are refused. Needs no matplotlib."""

import tempfile

import pytest

import samples
from report import load, paper, tables


def tsi(**changes):
    result = load.Result("sample.json", samples.sample("tsi-shm.json"))
    for name, values in changes.items():
        result.json[name].update(values)
    return result


def test_stages_add_up_to_the_total():
    rows = {r[0]: r[1:] for r in tables.our_breakdown(tsi(
        am={"latency_ns": 510.0, "lookup_execution_ns": 10.0},
        uncached_bitcode={"latency_ns": 2000.0, "load_us": 56.0},
        cached={"latency_ns": 260.0, "lookup_execution_ns": 4.0})).rows}
    assert rows["Total"] == ["0.51\u00a0µs", "2\u00a0µs", "0.26\u00a0µs"]
    assert rows["Transmission"] == ["0.5\u00a0µs", "2\u00a0µs", "0.256\u00a0µs"]
    assert rows["Lookup+Exec"] == ["10\u00a0ns", "4\u00a0ns", "4\u00a0ns"]
    assert rows["JIT"] == ["N/A", "(56\u00a0µs)", "N/A"]


def test_the_speedup_is_that_of_the_cached_call_by_the_runs_own_ratio():
    rows = tables.our_rates(tsi(cached={"latency_ratio_to_am": 0.5, "single_rate_ratio_to_am": 3.0})).rows
    assert (rows[0][2], rows[0][4]) == ("+100.00%", "+200.00%")


def test_quartiles_stand_in_the_unit_of_their_median():
    assert tables.duration(0.0975, [0.096, 0.124]) == "97.5\u00a0ns [96, 124]"


def test_the_papers_tables_are_as_printed():
    rows = {r[0]: r[1:] for r in tables.paper_breakdown(paper.PLATFORMS[0]).rows}
    assert rows["Transmission"] == ["2.50\u00a0µs", "5.02\u00a0µs", "2.62\u00a0µs"]
    assert rows["JIT"][1] == "(6.59\u00a0ms)"


def test_the_papers_rate_speedups_follow_from_its_rates():
    for platform in paper.PLATFORMS:
        am, uncached, cached = platform.rates
        assert 100 * (cached / am - 1) == pytest.approx(platform.rate_speedup[0], abs=0.01)
        assert 100 * (cached / uncached - 1) == pytest.approx(platform.rate_speedup[1], abs=0.01)


def test_the_papers_stages_add_up_to_its_totals():
    for platform in paper.PLATFORMS:
        for parts in zip(platform.lookup_us, platform.transmission_us, platform.total_us):
            assert parts[0] + parts[1] == pytest.approx(parts[2], abs=0.011), platform.name


def test_the_bound_is_the_ratio_over_the_fraction_of_it_that_was_reached():
    results = load.load([samples.HERE])
    depth, head, rows = tables.ratio_points(results, "tcp")
    assert depth == 4096
    two = next(r for r in rows if r[:2] == ["2", "1"])
    point = results.select(transport="tcp", servers=2, depth=4096, inflight=1)[0].modes["ifunc_bitcode"]
    assert two[head.index("2·S/(S−1)")] == "4.00"
    assert two[head.index("measured bound")] == f"{point['rate_ratio_to_get'] / 0.93:.2f}"
    assert two[head.index("of it reached")] == "93%"
    assert (two[head.index("one way, µs")], two[head.index("GET, µs")]) == ("8.06", "14.7")


def test_the_noise_names_the_widest_figure():
    found = tsi(cached={"latency_ns": 100.0, "latency_ns_spread": [10.0, 500.0]}).noise()
    assert (found.worst_name, round(found.worst, 6)) == ("cached.latency_ns", 4.9)


def refused(content, *words):
    with tempfile.TemporaryDirectory() as directory:
        path = samples.write(directory, content)
        with pytest.raises(load.BadResult) as caught:
            load.load([path])
        for word in (path, *words):
            assert word in str(caught.value)


def test_what_is_not_json_is_named():
    refused("{", "not JSON")
    refused("[1]", "not a JSON object")


def test_another_bench_is_refused():
    refused({"bench": "token", "transport": "tcp"}, 'bench is "token"')


def test_another_transport_is_refused():
    refused({"bench": "tsi", "transport": "rdma"}, 'transport is "rdma"')


def test_a_machine_in_words_is_refused():
    refused({**samples.sample("tsi-tcp.json"), "machine": "a fast one"}, 'machine is "a fast one"')


def test_a_missing_key_is_named_with_its_path():
    json = samples.sample("tsi-tcp.json")
    del json["cached"]["single_rate_msgs_per_s"]
    refused(json, "the key cached.single_rate_msgs_per_s is missing")


def test_a_missing_object_is_named():
    json = samples.sample("tsi-tcp.json")
    del json["uncached_bitcode"]
    refused(json, "uncached_bitcode is missing")


def test_a_word_where_a_number_is_due_is_refused():
    json = samples.sample("dapc-shm.json")
    json["points"][1]["am"]["chases_per_s"] = "fast"
    refused(json, 'points[1].am.chases_per_s is "fast"')


def test_a_spread_that_is_no_pair_is_refused():
    json = samples.sample("dapc-shm.json")
    json["points"][0]["am"]["chases_per_s_spread"] = [1]
    refused(json, "points[0].am.chases_per_s_spread is [1]")


def test_an_unverified_chase_is_not_a_measurement():
    json = samples.sample("dapc-shm.json")
    json["points"][2]["verified"] = False
    refused(json, "points[2].verified is false")


def test_a_rate_of_julia_that_is_no_number_or_zero_is_refused():
    json = samples.sample("dapc-tcp-julia.json")
    json["points"][1]["ifunc_bitcode_julia"]["chases_per_s"] = 0
    refused(json, "points[1].ifunc_bitcode_julia.chases_per_s is 0")
    json["points"][1]["ifunc_bitcode_julia"]["chases_per_s"] = "fast"
    refused(json, 'points[1].ifunc_bitcode_julia.chases_per_s is "fast"')


def test_a_ratio_of_julia_to_c_that_is_no_number_is_refused():
    json = samples.sample("dapc-tcp-julia.json")
    json["points"][0]["ifunc_bitcode_julia"]["rate_ratio_to_c"] = "equal"
    refused(json, 'points[0].ifunc_bitcode_julia.rate_ratio_to_c is "equal"')
    json["points"][0]["ifunc_bitcode_julia"].update(rate_ratio_to_c=1.0, rate_ratio_to_c_spread=[1.0])
    refused(json, "points[0].ifunc_bitcode_julia.rate_ratio_to_c_spread is [1.0]")


def test_a_point_without_a_language_that_the_file_names_is_refused():
    json = samples.sample("dapc-tcp-julia.json")
    del json["points"][2]["ifunc_bitcode_julia"]
    refused(json, "the key points[2].ifunc_bitcode_julia is missing")


def test_a_language_without_c_beside_it_is_refused():
    json = samples.sample("dapc-tcp-julia.json")
    del json["points"][3]["ifunc_bitcode"]
    refused(json, "the key points[3].ifunc_bitcode is missing")


def test_a_language_that_the_report_does_not_know_is_refused():
    for languages in ("julia", ["cobol"], [["julia"]]):
        refused({**samples.sample("dapc-tcp-julia.json"), "languages": languages}, "languages is", "julia, rust")


def test_rust_and_julia_stand_beside_c():
    json = samples.sample("dapc-tcp-julia.json")
    json["languages"].append("rust")
    for point in json["points"]:
        point["ifunc_bitcode_rust"] = point["ifunc_bitcode_julia"]
    with tempfile.TemporaryDirectory() as directory:
        points = load.load([samples.write(directory, json)]).points
    assert {"ifunc_bitcode", "ifunc_bitcode_julia", "ifunc_bitcode_rust"} <= set(points[0].modes)


def test_a_folder_without_json_is_refused():
    with tempfile.TemporaryDirectory() as directory:
        with pytest.raises(load.BadResult) as caught:
            load.load([directory])
        assert "holds no .json file" in str(caught.value)


def test_where_two_files_have_a_setting_the_longer_sweep_counts():
    points = load.load([samples.HERE]).select(transport="tcp", servers=4, depth=4096, inflight=1)
    assert [p.source.name for p in points] == ["dapc-tcp.json"]
