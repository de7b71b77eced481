# SPDX-License-Identifier: Apache-2.0
"""Limits that must hold whatever the costs, and costs found again in chases that were made from them."""

import os
import unittest

from report import load, paper

from . import calibrate, chase, paper_trend, predict
from .chase import Costs, Gaps

HOP = Costs(trip_us=6.0, step_us=0.02, wait_us=2.0)
GET = Costs(trip_us=11.0, wait_us=4.0)
GAPS = Gaps(message_us=3.0, frame_us=0.01)
SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "report")


class Limits(unittest.TestCase):
    def test_with_one_server_a_chase_by_code_crosses_the_network_twice_whatever_its_depth(self):
        self.assertEqual({chase.trips("ifunc_bitcode", 1, depth) for depth in (1, 64, 4096)}, {2})

    def test_a_get_crosses_it_in_every_step_whatever_the_number_of_servers(self):
        self.assertEqual({chase.trips("get", servers, 64) for servers in (1, 16, 1024)}, {64})
        self.assertEqual(chase.rate_per_s("get", GET, 1, 64), chase.rate_per_s("get", GET, 1024, 64))

    def test_with_endless_servers_and_depth_the_ratio_is_that_of_a_get_to_one_way_and_a_step(self):
        ratio = chase.chase_us("get", GET, 10**9, 10**7) / chase.chase_us("am", HOP, 10**9, 10**7)
        self.assertAlmostEqual(ratio, 11.0 / 6.02, places=4)

    def test_two_one_way_trips_for_a_get_give_the_bound_of_2s_over_s_minus_1(self):
        for servers in (2, 4, 8):
            ratio = (chase.chase_us("get", Costs(12.0), servers, 10**7) /
                     chase.chase_us("am", Costs(6.0), servers, 10**7))
            self.assertAlmostEqual(ratio, 2 * servers / (servers - 1), places=4)

    def test_more_servers_make_a_chase_by_code_slower_and_never_slower_than_one_way_a_step(self):
        rates = [chase.rate_per_s("am", HOP, s, 4096) for s in predict.SERVERS]
        self.assertEqual(rates, sorted(rates, reverse=True))
        self.assertGreater(rates[-1], 1e6 / (4097 * 6.0 + 4096 * 0.02))

    def test_processes_without_a_core_wait_and_cores_for_all_do_not(self):
        self.assertEqual([chase.processes_without_core(s, 2) for s in (1, 2, 16)], [0, 1, 15])
        self.assertEqual(chase.processes_without_core(1024, None), 0)


class InFlight(unittest.TestCase):
    def test_one_customer_waits_for_nobody(self):
        self.assertAlmostEqual(chase.closed_rate(1, 100.0, 40.0, 3), 0.01)

    def test_more_chases_never_lower_the_rate_and_stay_below_both_bounds(self):
        before = 0
        for count in (1, 2, 4, 8, 16, 64, 256):
            rate = chase.closed_rate(count, 100.0, 40.0, 2)
            self.assertGreaterEqual(rate, before)
            self.assertLessEqual(rate, min(count / 100.0, 2 / 40.0) * (1 + 1e-9))
            before = rate
        self.assertGreater(before, 0.95 * 2 / 40.0)

    def test_coalesced_frames_make_a_full_link_faster_than_single_messages(self):
        rate = {m: chase.rate_per_s(m, HOP, 2, 4096, 64, 2, GAPS) for m in ("am", "ifunc_bitcode")}
        self.assertGreater(rate["ifunc_bitcode"], 2 * rate["am"])

    def test_frames_spread_over_many_servers_no_longer_travel_together(self):
        self.assertEqual(chase.frames_together(1024, 64), 1)
        self.assertEqual(chase.frames_together(2, 64), 32)


class Calibration(unittest.TestCase):
    def test_the_costs_of_made_up_chases_are_found_again(self):
        for mode, costs in (("am", HOP), ("get", GET)):
            samples = [(s, d, chase.rate_per_s(mode, costs, s, d, cores=2)) for s in (1, 4) for d in (1, 64, 4096)]
            found = calibrate.costs_of(mode, samples, 2)
            self.assertAlmostEqual(found.trip_us, costs.trip_us, places=6)
            self.assertAlmostEqual(found.step_us, costs.step_us, places=6)
            self.assertAlmostEqual(found.wait_us, costs.wait_us, places=6)

    def test_no_cost_is_negative(self):
        samples = [(1, 1, 1e5), (1, 64, 1e5), (4, 1, 1e6), (4, 64, 1e3)]  # more servers, yet faster: noise
        found = calibrate.costs_of("am", samples, 2)
        self.assertGreaterEqual(min(found.trip_us, found.step_us, found.wait_us), 0)

    def test_a_singular_system_has_no_solution(self):
        self.assertIsNone(calibrate.solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]))


class Prediction(unittest.TestCase):
    def test_the_samples_are_predicted_from_two_numbers_of_servers(self):
        prediction = predict.predict(load.load([SAMPLES]))
        self.assertEqual((prediction.transport, prediction.calibrated_on), ("tcp", (1, 4)))
        self.assertEqual({e.servers for e in prediction.tested(True)}, {2, 8, 16})
        middle, worst = predict.median_and_worst(prediction.tested(True))
        self.assertLess(middle, 0.05)
        self.assertLess(abs(worst.relative), 0.1)
        self.assertEqual({e.inflight for e in prediction.tested(False)}, {4, 16})

    def test_two_numbers_of_servers_leave_nothing_to_check_against(self):
        results = load.load([SAMPLES])
        results.points = [p for p in results.points if p.servers <= 2]
        self.assertIsNone(predict.predict(results))


class PaperTrend(unittest.TestCase):
    def test_every_stated_gain_lies_between_a_get_of_one_and_of_two_messages(self):
        for claim in paper.CHASE_CLAIMS:
            found = paper_trend.trend(claim)
            self.assertLess(found.least_gain, found.stated_gain, claim.system)
            self.assertLess(found.stated_gain, found.most_gain, claim.system)

    def test_the_get_time_that_a_gain_needs_gives_that_gain(self):
        claim = paper.CHASE_CLAIMS[2]
        found = paper_trend.trend(claim)
        ratio = (chase.chase_us("get", Costs(found.needed_get_us), claim.servers, 4096) /
                 chase.chase_us("am", Costs(claim.ifunc_us), claim.servers, 4096))
        self.assertAlmostEqual(ratio, 1.75)


if __name__ == "__main__":
    unittest.main()
