# SPDX-License-Identifier: Apache-2.0
"""What the tables say for given JSON, and which files are refused. Needs no matplotlib."""

import tempfile
import unittest

import samples
from report import load, noise, paper, tables


class Tables(unittest.TestCase):
    def tsi(self, **changes):
        result = load.Result("sample.json", samples.sample("tsi-shm.json"))
        for name, values in changes.items():
            result.json[name].update(values)
        return result

    def test_stages_add_up_to_the_total(self):
        rows = {r[0]: r[1:] for r in tables.our_breakdown(self.tsi(
            am={"latency_ns": 510.0, "lookup_execution_ns": 10.0},
            uncached_bitcode={"latency_ns": 2000.0, "load_us": 56.0},
            cached={"latency_ns": 260.0, "lookup_execution_ns": 4.0})).rows}
        self.assertEqual(rows["Total"], ["0.51\u00a0µs", "2\u00a0µs", "0.26\u00a0µs"])
        self.assertEqual(rows["Transmission"], ["0.5\u00a0µs", "2\u00a0µs", "0.256\u00a0µs"])
        self.assertEqual(rows["Lookup+Exec"], ["10\u00a0ns", "4\u00a0ns", "4\u00a0ns"])
        self.assertEqual(rows["JIT"], ["N/A", "(56\u00a0µs)", "N/A"])

    def test_the_speedup_is_that_of_the_cached_call_by_the_runs_own_ratio(self):
        rows = tables.our_rates(self.tsi(cached={"latency_ratio_to_am": 0.5, "single_rate_ratio_to_am": 3.0})).rows
        self.assertEqual((rows[0][2], rows[0][4]), ("+100.00%", "+200.00%"))

    def test_quartiles_stand_in_the_unit_of_their_median(self):
        self.assertEqual(tables.duration(0.0975, [0.096, 0.124]), "97.5\u00a0ns [96, 124]")

    def test_the_papers_tables_are_as_printed(self):
        rows = {r[0]: r[1:] for r in tables.paper_breakdown(paper.PLATFORMS[0]).rows}
        self.assertEqual(rows["Transmission"], ["2.50\u00a0µs", "5.02\u00a0µs", "2.62\u00a0µs"])
        self.assertEqual(rows["JIT"][1], "(6.59\u00a0ms)")

    def test_the_papers_rate_speedups_follow_from_its_rates(self):
        for platform in paper.PLATFORMS:
            am, uncached, cached = platform.rates
            self.assertAlmostEqual(100 * (cached / am - 1), platform.rate_speedup[0], delta=0.01)
            self.assertAlmostEqual(100 * (cached / uncached - 1), platform.rate_speedup[1], delta=0.01)

    def test_the_papers_stages_add_up_to_its_totals(self):
        for platform in paper.PLATFORMS:
            for parts in zip(platform.lookup_us, platform.transmission_us, platform.total_us):
                self.assertAlmostEqual(parts[0] + parts[1], parts[2], delta=0.011, msg=platform.name)

    def test_the_bound_is_the_ratio_over_the_fraction_of_it_that_was_reached(self):
        results = load.load([samples.HERE])
        depth, head, rows = tables.ratio_points(results, "tcp")
        self.assertEqual(depth, 4096)
        two = next(r for r in rows if r[:2] == ["2", "1"])
        point = results.select(transport="tcp", servers=2, depth=4096, inflight=1)[0].modes["ifunc_bitcode"]
        self.assertEqual(two[head.index("2·S/(S−1)")], "4.00")
        self.assertEqual(two[head.index("measured bound")], f"{point['rate_ratio_to_get'] / 0.93:.2f}")
        self.assertEqual(two[head.index("of it reached")], "93%")
        self.assertEqual((two[head.index("one way, µs")], two[head.index("GET, µs")]), ("8.06", "14.7"))

    def test_the_noise_names_the_widest_figure(self):
        found = noise.of(self.tsi(cached={"latency_ns": 100.0, "latency_ns_spread": [10.0, 500.0]}))
        self.assertEqual((found.worst_name, round(found.worst, 6)), ("cached.latency_ns", 4.9))


class Refusals(unittest.TestCase):
    def refused(self, content, *words):
        with tempfile.TemporaryDirectory() as directory:
            path = samples.write(directory, content)
            with self.assertRaises(load.BadResult) as caught:
                load.load([path])
            for word in (path, *words):
                self.assertIn(word, str(caught.exception))

    def test_what_is_not_json_is_named(self):
        self.refused("{", "not JSON")
        self.refused("[1]", "not a JSON object")

    def test_another_bench_is_refused(self):
        self.refused({"bench": "token", "transport": "tcp"}, 'bench is "token"')

    def test_another_transport_is_refused(self):
        self.refused({"bench": "tsi", "transport": "rdma"}, 'transport is "rdma"')

    def test_a_machine_in_words_is_refused(self):
        self.refused({**samples.sample("tsi-tcp.json"), "machine": "a fast one"}, 'machine is "a fast one"')

    def test_a_missing_key_is_named_with_its_path(self):
        json = samples.sample("tsi-tcp.json")
        del json["cached"]["single_rate_msgs_per_s"]
        self.refused(json, "the key cached.single_rate_msgs_per_s is missing")

    def test_a_missing_object_is_named(self):
        json = samples.sample("tsi-tcp.json")
        del json["uncached_bitcode"]
        self.refused(json, "uncached_bitcode is missing")

    def test_a_word_where_a_number_is_due_is_refused(self):
        json = samples.sample("dapc-shm.json")
        json["points"][1]["am"]["chases_per_s"] = "fast"
        self.refused(json, 'points[1].am.chases_per_s is "fast"')

    def test_a_spread_that_is_no_pair_is_refused(self):
        json = samples.sample("dapc-shm.json")
        json["points"][0]["am"]["chases_per_s_spread"] = [1]
        self.refused(json, "points[0].am.chases_per_s_spread is [1]")

    def test_an_unverified_chase_is_not_a_measurement(self):
        json = samples.sample("dapc-shm.json")
        json["points"][2]["verified"] = False
        self.refused(json, "points[2].verified is false")

    def test_a_folder_without_json_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaises(load.BadResult) as caught:
                load.load([directory])
            self.assertIn("holds no .json file", str(caught.exception))

    def test_where_two_files_have_a_setting_the_longer_sweep_counts(self):
        points = load.load([samples.HERE]).select(transport="tcp", servers=4, depth=4096, inflight=1)
        self.assertEqual([p.source.name for p in points], ["dapc-tcp.json"])


if __name__ == "__main__":
    unittest.main()
