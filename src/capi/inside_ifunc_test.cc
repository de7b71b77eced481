// SPDX-License-Identifier: Apache-2.0
//
// An ifunc may call functions of the application, and these must not wait inside the library. The waiting thread would
// be the one that has to bring the answer. Work that can be done later is done later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <threechains/threechains.h>

#include <functional>
#include <string>
#include <thread>

#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using testing::HasSubstr;

// Three nodes: `caller` runs an ifunc at `target`, which has a call out to `mute`, whom nobody drives.
class InsideAnIfunc : public testing::Test {
 protected:
  InsideAnIfunc() {
    EXPECT_EQ(tc_node_start_progress(mute.handle), TC_OK);
    to_mute = target.connect(mute);
    EXPECT_EQ(tc_node_stop_progress(mute.handle), TC_OK);
    unanswered = target.call(to_mute, "echo");
    current = this;
  }
  ~InsideAnIfunc() override { tc_future_free(unanswered); }

  // What `does` says when the ifunc calls it, and with which words.
  tc_status_t said_inside(std::function<tc_status_t()> does) {
    does_inside = std::move(does);
    EXPECT_EQ(tc_node_export(target.handle, "application_answer", reinterpret_cast<void*>(&answer)), TC_OK);
    EXPECT_EQ(tc_node_start_progress(target.handle), TC_OK);
    tc_future_t* const future = caller.call(caller.connect(target), "exported");
    EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK) << tc_error_message();
    EXPECT_EQ(tc_future_status(future), TC_OK) << tc_error_message();
    tc_future_free(future);
    EXPECT_EQ(tc_node_stop_progress(target.handle), TC_OK);
    return said;
  }
  static uint64_t answer() {
    current->said = current->does_inside();
    current->words = tc_error_message();
    return 0;
  }

  static inline InsideAnIfunc* current = nullptr;
  Node target, mute, caller;
  tc_endpoint_t* to_mute = nullptr;
  tc_future_t* unanswered = nullptr;
  std::function<tc_status_t()> does_inside;
  tc_status_t said = TC_OK;
  std::string words;
};

TEST_F(InsideAnIfunc, nobody_may_wait_for_an_answer) {
  EXPECT_EQ(said_inside([this] { return tc_future_wait(unanswered, 300); }), TC_ERR_INVALID);
  EXPECT_THAT(words, HasSubstr("an ifunc that runs cannot wait for an answer"));
}

TEST_F(InsideAnIfunc, nobody_may_connect) {
  tc_endpoint_t* endpoint = nullptr;
  EXPECT_EQ(said_inside([&] { return tc_node_connect(target.handle, tc_node_address(caller.handle), 300, &endpoint); }),
            TC_ERR_INVALID);
  EXPECT_THAT(words, HasSubstr("an ifunc that runs cannot wait for a connection"));
}

TEST_F(InsideAnIfunc, an_endpoint_is_closed_without_a_wait) {
  EXPECT_EQ(said_inside([this] { return tc_endpoint_free(to_mute, 0); }), TC_OK);
  EXPECT_EQ(tc_future_wait(unanswered, 10'000), TC_OK);
  EXPECT_EQ(tc_future_status(unanswered), TC_ERR_CLOSED);
}

TEST_F(InsideAnIfunc, nobody_may_end_the_progress_thread_that_runs_it) {
  EXPECT_EQ(said_inside([this] { return tc_node_stop_progress(target.handle); }), TC_ERR_INVALID);
  EXPECT_THAT(words, HasSubstr("an ifunc that runs cannot wait for the end of the progress thread"));
}

}  // namespace
}  // namespace tc::capi
