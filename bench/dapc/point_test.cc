// SPDX-License-Identifier: Apache-2.0
#include "dapc/point.h"

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
  for (const auto& run : {run_of(50, 5, 45, 60), run_of(100, 20, 120, 90), run_of(200, 40, 90, 200)}) point.add(run);
  EXPECT_DOUBLE_EQ(point.rate.of(ChaseMode::am).median, 100);
  EXPECT_DOUBLE_EQ(point.rate.ratio(ChaseMode::ifunc_bitcode, ChaseMode::am).median, 0.9);
  EXPECT_DOUBLE_EQ(point.rate.ratio(ChaseMode::ifunc_object, ChaseMode::am).median, 1.0);
  EXPECT_DOUBLE_EQ(point.rate.ratio(ChaseMode::ifunc_bitcode, ChaseMode::get).median, 6.0);
  EXPECT_DOUBLE_EQ(summarize(point.get_us).median, 1e6 / (20 * 10));
}

TEST(DapcSamples, ATranslationIsComparedWithCInTheSameRun) {
  auto point = point_of(1, 10, 1);
  std::vector<DapcRun> runs = {run_of(1, 1, 100, 7), run_of(1, 1, 50, 7), run_of(1, 1, 10, 7)};
  for (auto& run : runs) run.rate[ChaseMode::ifunc_bitcode_rust] = run.rate[ChaseMode::ifunc_bitcode] * 0.5;
  runs[0].rate[ChaseMode::ifunc_bitcode_rust] = 200;
  runs[1].rate[ChaseMode::ifunc_bitcode_rust] = 40;
  for (const auto& run : runs) point.add(run);
  EXPECT_DOUBLE_EQ(point.ratio_to_c(ChaseMode::ifunc_bitcode_rust)->median, 0.8);
  EXPECT_FALSE(point.ratio_to_c(ChaseMode::ifunc_object));
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
  point.add(run);
  EXPECT_NEAR(point.fraction_of_bound(ChaseMode::ifunc_bitcode, point.one_way_us)->median, 1.0, 1e-9);
  EXPECT_NEAR(point.fraction_of_bound(ChaseMode::ifunc_object, point.one_way_us)->median, 0.5, 1e-9);
  EXPECT_NEAR(point.fraction_of_bound(ChaseMode::ifunc_bitcode, point.pair_one_way_us)->median, 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(summarize(point.one_way_us).median, 8);
}

TEST(DapcSamples, OneServerOrManyChasesHaveNoBound) {
  auto alone = point_of(1, 100, 1);
  alone.add(run_of(1, 1, 1, 1));
  EXPECT_FALSE(alone.fraction_of_bound(ChaseMode::ifunc_bitcode, alone.one_way_us));
  auto many = point_of(4, 100, 8);
  auto run = run_of(1, 1, 1, 1);
  run.one_way_us = run.pair_one_way_us = 1;
  many.add(run);
  EXPECT_FALSE(many.fraction_of_bound(ChaseMode::ifunc_bitcode, many.one_way_us));
  EXPECT_DOUBLE_EQ(summarize(many.one_way_us).median, 1);
}

}  // namespace
}  // namespace tc::bench
