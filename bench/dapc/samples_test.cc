// SPDX-License-Identifier: Apache-2.0
#include "dapc/samples.h"

#include <gtest/gtest.h>

namespace tc::bench {
namespace {

DapcRun run_of(double am, double get, double bitcode, double object) {
  DapcRun run;
  run.rate = {{ChaseMode::am, am},
              {ChaseMode::get, get},
              {ChaseMode::ifunc_bitcode, bitcode},
              {ChaseMode::ifunc_object, object}};
  return run;
}

DapcPoint point_of(uint32_t servers, uint32_t depth, uint32_t inflight) {
  DapcPoint point;
  point.servers = servers;
  point.depth = depth;
  point.inflight = inflight;
  return point;
}

TEST(DapcSamples, RatiosAreThoseOfOneRunAndThenTheirMedian) {
  auto point = point_of(1, 10, 1);
  // The machine was twice as fast in the second run: the medians' own ratio would be 90 / 100.
  summarize_runs({run_of(50, 5, 45, 60), run_of(100, 20, 120, 90), run_of(200, 40, 90, 200)}, point);
  EXPECT_DOUBLE_EQ(point.rate.at(ChaseMode::am).median, 100);
  EXPECT_DOUBLE_EQ(point.ratio_to_am.at(ChaseMode::ifunc_bitcode).median, 0.9);
  EXPECT_DOUBLE_EQ(point.ratio_to_am.at(ChaseMode::ifunc_object).median, 1.0);
  EXPECT_DOUBLE_EQ(point.ratio_to_get.at(ChaseMode::ifunc_bitcode).median, 6.0);
  EXPECT_DOUBLE_EQ(point.get_us.median, 1e6 / (20 * 10));
}

TEST(DapcSamples, ATranslationIsComparedWithCInTheSameRun) {
  auto point = point_of(1, 10, 1);
  std::vector<DapcRun> runs = {run_of(1, 1, 100, 7), run_of(1, 1, 50, 7), run_of(1, 1, 10, 7)};
  for (auto& run : runs) run.rate[ChaseMode::ifunc_bitcode_rust] = run.rate[ChaseMode::ifunc_bitcode] * 0.5;
  runs[0].rate[ChaseMode::ifunc_bitcode_rust] = 200;
  runs[1].rate[ChaseMode::ifunc_bitcode_rust] = 40;
  summarize_runs(runs, point);
  EXPECT_DOUBLE_EQ(point.ratio_to_c.at(ChaseMode::ifunc_bitcode_rust).median, 0.8);
  EXPECT_FALSE(point.ratio_to_c.contains(ChaseMode::ifunc_object));
}

TEST(DapcSamples, TheBoundCountsOneWayForEachStepThatLeavesItsServer) {
  EXPECT_DOUBLE_EQ(bound_vs_get(2, 20, 10), 4.0);  // half of the steps stay, and a GET takes two ways
  EXPECT_DOUBLE_EQ(bound_vs_get(4, 20, 10), 20.0 * 4 / 30);
}

TEST(DapcSamples, AChaseOfNothingButHopsReachesTheBound) {
  auto point = point_of(4, 100, 1);
  auto run = run_of(1, 500, 1e6 / (100 * 0.75 * 8), 1e6 / (100 * 0.75 * 16));
  run.one_way_us = 8;
  run.pair_one_way_us = 4;
  summarize_runs({run}, point);
  EXPECT_NEAR(point.fraction_of_bound.at(ChaseMode::ifunc_bitcode).median, 1.0, 1e-9);
  EXPECT_NEAR(point.fraction_of_bound.at(ChaseMode::ifunc_object).median, 0.5, 1e-9);
  EXPECT_NEAR(point.fraction_of_pair_bound.at(ChaseMode::ifunc_bitcode).median, 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(point.one_way_us.median, 8);
}

TEST(DapcSamples, OneServerOrManyChasesHaveNoBound) {
  auto alone = point_of(1, 100, 1);
  summarize_runs({run_of(1, 1, 1, 1)}, alone);
  EXPECT_TRUE(alone.fraction_of_bound.empty());
  auto many = point_of(4, 100, 8);
  auto run = run_of(1, 1, 1, 1);
  run.one_way_us = run.pair_one_way_us = 1;
  summarize_runs({run}, many);
  EXPECT_TRUE(many.fraction_of_bound.empty());
  EXPECT_DOUBLE_EQ(many.one_way_us.median, 1);
}

}  // namespace
}  // namespace tc::bench
