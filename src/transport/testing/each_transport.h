// SPDX-License-Identifier: Apache-2.0
//
// For tests: two nodes of one process on each transport, to try what every transport has to do. They are driven by one
// thread, or by one each.
#pragma once

#include <gtest/gtest.h>

#include "transport/testing/test_node.h"

namespace tc::transport {

class EachTransport : public testing::TestWithParam<Kind> {
 protected:
  // UCX 1.13 ends the process of a peer whose other side goes while the two still connect. Here that is ourselves.
  void TearDown() override {
    if (!GetParam().is_ucx()) return;
    for (const auto deadline = Deadline::after_ms(50); !deadline.passed();) {
      a->poll();
      b->poll();
    }
  }
  std::unique_ptr<TestNode> make() { return std::make_unique<TestNode>(GetParam(), &network); }
  static bool poll_until(TestNode& a, TestNode& b, const std::function<bool()>& done, uint64_t ms = 60'000) {
    return a.until(
        [&] {
          b.poll();
          return done();
        },
        ms);
  }
  void join() {
    a->connect(b->listen());
    ASSERT_TRUE(poll_until(*a, *b, [&] { return a->is_open() && b->is_open(); }));
  }
  // Takes frame `number` at b.
  Took arrives(uint32_t number) {
    Took took = Took::nothing;
    (void)poll_until(*a, *b, [&] { return (took = take_frame(b->in(), number)) != Took::nothing; });
    return took;
  }

  SimulatedNetwork network;
  std::unique_ptr<TestNode> a = make(), b = make();
};

inline std::string name_of_kind(const testing::TestParamInfo<Kind>& info) { return info.param.name; }

}  // namespace tc::transport
