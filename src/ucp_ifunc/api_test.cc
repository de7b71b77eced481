// SPDX-License-Identifier: Apache-2.0
//
// The API from outside, with real UCX: a source and a target context in one process.
#include <algorithm>
#include <fstream>

#include "ucp_ifunc/testing/endpoints.h"

namespace tc::ucp_testing {

namespace {

TEST_F(UcpIfunc, a_message_runs_once_at_the_target_and_its_slot_is_free_again) {
  auto* const ifunc = registered(source, "step");
  auto msg = message(ifunc);
  EXPECT_EQ(target.poll(&result), UCS_ERR_NO_MESSAGE);
  for (unsigned long i = 1; i <= 3; ++i) {
    ASSERT_EQ(road.send(msg), UCS_OK) << ucp_ifunc_error();
    ASSERT_EQ(target.poll_until(&result), UCS_OK) << ucp_ifunc_error();
    EXPECT_EQ(target.poll(&result), UCS_ERR_NO_MESSAGE);
    EXPECT_EQ(result.sum, i);
    EXPECT_EQ(result.calls, i) << "a variable of the ifunc keeps its value";
    EXPECT_EQ(result.payload_size, 7u);
    EXPECT_EQ(result.first, 'p');
  }
  ucp_ifunc_msg_free(msg);
  ucp_deregister_ifunc(source.context, ifunc);
}

TEST_F(UcpIfunc, the_payload_can_be_changed_between_sends) {
  auto msg = message(registered(source, "step"), "abc");
  void* payload = nullptr;
  ASSERT_EQ(ucp_ifunc_msg_get_payload_ptr(&msg, &payload, nullptr), UCS_OK);
  *static_cast<char*>(payload) = 'z';
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK);
  EXPECT_EQ(result.first, 'z');
  size_t size = 0;
  ASSERT_EQ(ucp_ifunc_msg_get_payload_ptr(&msg, &payload, &size), UCS_OK);
  EXPECT_EQ(size, 3u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, the_code_goes_along_once_to_each_endpoint) {
  auto msg = message(registered(source, "step"), std::string(300, 'x'));
  const size_t cached = 48 + 300;
  EXPECT_GT(msg.frame_size, cached);
  EXPECT_LT(msg.frame_size, 16384u - 300u) << "a small ifunc fits the papers' slots";
  const auto untouched = [this](size_t from, size_t to) {
    return std::all_of(target.memory + from, target.memory + to, [](char c) { return c == 17; });
  };
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK);
  EXPECT_FALSE(untouched(cached + 100, msg.frame_size));
  std::memset(target.memory, 17, target.size);
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK);
  EXPECT_TRUE(untouched(cached, target.size));
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, registering_a_name_twice_gives_the_first_handle) {
  auto* const first = registered(source, "step");
  EXPECT_EQ(registered(source, "step"), first);
  ucp_deregister_ifunc(source.context, first);
  auto msg = message(first);  // the second registration holds it
  ucp_deregister_ifunc(source.context, first);
  ASSERT_EQ(road.send(msg), UCS_OK) << "messages outlive the registration";
  EXPECT_EQ(target.poll_until(&result), UCS_OK);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, changed_code_under_an_old_name_is_sent_and_runs) {
  auto* const one = registered(source, "step");
  auto msg = message(one);
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK);
  ucp_ifunc_msg_free(msg);
  ucp_deregister_ifunc(source.context, one);
  use("ten");
  msg = message(registered(source, "step"));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(road.send(msg), UCS_OK);
    ASSERT_EQ(target.poll_until(&result), UCS_OK);
  }
  EXPECT_EQ(result.sum, 21u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, two_contexts_of_a_process_may_hold_different_code_under_one_name) {
  Party other;
  Road other_road(other, target);
  auto* const one = registered(source, "step");
  use("ten");
  auto* const ten = registered(other, "step");
  EXPECT_NE(one, ten);
  auto first = message(one), second = message(ten);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(road.send(first), UCS_OK);
    ASSERT_EQ(target.poll_until(&result), UCS_OK);
    ASSERT_EQ(other_road.send(second), UCS_OK);
    ASSERT_EQ(target.poll_until(&result), UCS_OK);
  }
  EXPECT_EQ(result.sum, 33u);
  ucp_ifunc_msg_free(first);
  ucp_ifunc_msg_free(second);
}

TEST_F(UcpIfunc, a_target_that_lost_the_code_says_so_and_a_source_that_forgets_it_heals_that) {
  auto msg = message(registered(source, "step"));
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK);
  ucp_ifunc_release(target.context);  // as if it had restarted
  ASSERT_EQ(road.send(msg), UCS_OK);
  EXPECT_EQ(target.poll_until(&result), UCS_ERR_NO_ELEM);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("ucp_ifunc_forget"));
  EXPECT_EQ(target.poll(&result), UCS_ERR_NO_MESSAGE) << "it does not say so for ever";
  ucp_ifunc_forget(road.ep);
  ASSERT_EQ(road.send(msg), UCS_OK);
  EXPECT_EQ(target.poll_until(&result), UCS_OK);
  EXPECT_EQ(result.sum, 2u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, a_new_endpoint_gets_the_code_even_when_it_has_an_old_ones_address) {
  auto msg = message(registered(source, "step"));
  for (int i = 0; i < 5; ++i) {
    Party fresh;
    Road to_fresh(source, fresh);
    ASSERT_EQ(to_fresh.send(msg), UCS_OK);
    ASSERT_EQ(fresh.poll_until(&result), UCS_OK) << ucp_ifunc_error();
  }
  EXPECT_EQ(result.sum, 5u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, a_slot_at_an_odd_address_works_as_well) {
  auto msg = message(registered(source, "step"), std::string(1000, 'q'));
  for (const size_t at : {1, 7, 12, 4095}) {
    ASSERT_EQ(road.send(msg, at), UCS_OK);
    auto status = UCS_ERR_NO_MESSAGE;
    for (int i = 0; i < 1'000'000 && status == UCS_ERR_NO_MESSAGE; ++i) status = target.poll(&result, at);
    ASSERT_EQ(status, UCS_OK) << at << ucp_ifunc_error();
    EXPECT_EQ(result.first, 'q');
    EXPECT_EQ(result.payload_address % 16, 0u) << "the payload is aligned all the same";
  }
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, one_slot_takes_many_messages_one_after_the_other) {
  auto msg = message(registered(source, "step"), std::string(5000, 'r'));
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(road.send(msg, i % 2 == 0 ? 0 : 64), UCS_OK);
    auto status = UCS_ERR_NO_MESSAGE;
    while (status == UCS_ERR_NO_MESSAGE) status = target.poll(&result, i % 2 == 0 ? 0 : 64);
    ASSERT_EQ(status, UCS_OK);
  }
  EXPECT_EQ(result.sum, 2000u);
  EXPECT_EQ(result.calls, 2000u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, the_payload_functions_may_refuse) {
  auto* const ifunc = registered(source, "step");
  ucp_ifunc_msg_t msg{nullptr, nullptr, 0};
  std::string thirteen(13, '!');
  EXPECT_EQ(ucp_ifunc_msg_create(ifunc, thirteen.data(), thirteen.size(), &msg), UCS_ERR_CANCELED);
  EXPECT_EQ(msg.frame, nullptr) << "untouched";
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("payload_init"));
}

TEST_F(UcpIfunc, a_name_without_a_file_is_no_element_and_the_message_says_where_it_was_looked_for) {
  ucp_ifunc_h ifunc = nullptr;
  EXPECT_EQ(ucp_register_ifunc(source.context, named("absent"), &ifunc), UCS_ERR_NO_ELEM);
  EXPECT_EQ(ifunc, nullptr);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr(TC_TESTDATA));
  EXPECT_EQ(ucp_register_ifunc(source.context, named("../one/step"), &ifunc), UCS_ERR_INVALID_PARAM);
}

TEST_F(UcpIfunc, the_2021_form_of_payload_functions_works) {
  auto msg = message(registered(source, "old"), "12345");
  size_t sum = 0;
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&sum), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(sum, 10u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, a_failure_that_the_ifunc_reports_is_polls_status) {
  auto msg = message(registered(source, "fail"));
  ASSERT_EQ(road.send(msg), UCS_OK);
  EXPECT_EQ(target.poll_until(nullptr), UCS_ERR_CANCELED);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("no such record"));
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, code_that_does_not_resolve_is_refused_and_the_target_goes_on) {
  auto bad = message(registered(source, "needs"));
  ASSERT_EQ(road.send(bad), UCS_OK);
  EXPECT_EQ(target.poll_until(&result), UCS_ERR_UNSUPPORTED);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("nowhere_to_be_found"));
  auto good = message(registered(source, "step"));
  ASSERT_EQ(road.send(good), UCS_OK);
  EXPECT_EQ(target.poll_until(&result), UCS_OK);
  ucp_ifunc_msg_free(bad);
  ucp_ifunc_msg_free(good);
}

TEST_F(UcpIfunc, bitcode_in_memory_is_registered_and_runs) {
  std::ifstream file(std::string(TC_TESTDATA) + "/ten/step." + TC_HOST_TRIPLE + ".bc", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(bytes.empty());
  std::string triple = TC_HOST_TRIPLE, library = "c";
  ucp_llvm_bc_t bitcode{triple.data(), bytes.data(), static_cast<uint32_t>(bytes.size())};
  char* deps[] = {library.data()};
  ucp_ifunc_h ifunc = nullptr;
  ASSERT_EQ(ucp_register_ifunc_im(source.context, named("step"), &bitcode, 1, deps, 1, &ifunc), UCS_OK)
      << ucp_ifunc_error();
  auto msg = message(ifunc);
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(result.sum, 10u);
  ucp_ifunc_msg_free(msg);
  std::string junk = "BC junk";
  bitcode.bc = junk.data();
  bitcode.size = static_cast<uint32_t>(junk.size());
  EXPECT_EQ(ucp_register_ifunc_im(source.context, named("junk"), &bitcode, 1, nullptr, 0, &ifunc),
            UCS_ERR_INVALID_PARAM);
}

TEST_F(UcpIfunc, an_ifunc_that_was_received_can_be_sent_on_by_its_name) {
  auto msg = message(registered(source, "step"));
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK);
  use("empty");
  Party third;
  Road onward(target, third);
  auto passed_on = message(registered(target, "step"), "onward");
  ASSERT_EQ(onward.send(passed_on), UCS_OK);
  ASSERT_EQ(third.poll_until(&result), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(result.sum, 2u);
  EXPECT_EQ(result.first, 'o');
  ucp_ifunc_msg_free(msg);
  ucp_ifunc_msg_free(passed_on);
}

TEST_F(UcpIfunc, the_operator_may_narrow_what_code_can_use) {
  setenv("UCP_IFUNC_ALLOW", "libz.so.1,getpid", 1);
  Party narrow;
  Road to_narrow(source, narrow);
  auto msg = message(registered(source, "step"));
  ASSERT_EQ(to_narrow.send(msg), UCS_OK);
  EXPECT_EQ(narrow.poll_until(&result), UCS_OK) << "it uses nothing";
  auto text = message(registered(source, "digest"), "text");
  ASSERT_EQ(to_narrow.send(text), UCS_OK);
  EXPECT_EQ(narrow.poll_until(&result), UCS_ERR_REJECTED);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("libcrypto"));
  unsetenv("UCP_IFUNC_ALLOW");
  ucp_ifunc_msg_free(msg);
  ucp_ifunc_msg_free(text);
}

TEST_F(UcpIfunc, active_messages_run_by_worker_progress_alone) {
  ASSERT_EQ(ucp_ifunc_am_register(target.worker, target.context, 9, &result), UCS_OK) << ucp_ifunc_error();
  unsigned long expected = 0;
  const ucp_request_param_t nothing{};
  for (const size_t size : {1, 100, 4000, 20'000, 1'000'000}) {
    auto msg = message(registered(source, "step"), std::string(size, 'a'));
    for (int i = 0; i < 3; ++i) {
      road.finish(ucp_ifunc_am_send_nbx(road.ep, 9, msg, &nothing));
      ++expected;
      for (int spins = 0; spins < 10'000'000 && result.sum < expected; ++spins) {
        ucp_worker_progress(target.worker);
        ucp_worker_progress(source.worker);
      }
      ASSERT_EQ(result.sum, expected) << size;
      EXPECT_EQ(result.payload_size, size);
      EXPECT_EQ(result.payload_address % 16, 0u);
    }
    ucp_ifunc_msg_free(msg);
  }
}

// The library says itself what is sent; the other fields are the caller's.
TEST_F(UcpIfunc, an_active_message_is_sent_whole_whatever_datatype_its_caller_asks_for) {
  ASSERT_EQ(ucp_ifunc_am_register(target.worker, target.context, 9, &result), UCS_OK) << ucp_ifunc_error();
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
  param.datatype = ucp_dt_make_contig(8);
  auto msg = message(registered(source, "step"), std::string(100, 'a'));
  road.finish(ucp_ifunc_am_send_nbx(road.ep, 9, msg, &param));
  for (int spins = 0; spins < 10'000'000 && result.sum == 0; ++spins) {
    ucp_worker_progress(target.worker);
    ucp_worker_progress(source.worker);
  }
  EXPECT_EQ(result.sum, 1u);
  EXPECT_EQ(result.payload_size, 100u);
  EXPECT_EQ(param.op_attr_mask, uint32_t{UCP_OP_ATTR_FIELD_DATATYPE}) << "it is the caller's";
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, a_damaged_active_message_is_logged_and_the_worker_goes_on) {
  ASSERT_EQ(ucp_ifunc_am_register(target.worker, target.context, 9, &result), UCS_OK);
  const std::string junk(48, 'j');
  const ucp_request_param_t nothing{};
  road.finish(ucp_am_send_nbx(road.ep, 9, junk.data(), 20, junk.data(), 10, &nothing));
  road.finish(ucp_am_send_nbx(road.ep, 9, junk.data(), 48, junk.data(), 10, &nothing));
  auto msg = message(registered(source, "step"));
  road.finish(ucp_ifunc_am_send_nbx(road.ep, 9, msg, &nothing));
  for (int spins = 0; spins < 10'000'000 && result.sum == 0; ++spins) ucp_worker_progress(target.worker);
  EXPECT_EQ(result.sum, 1u);
  ucp_ifunc_msg_free(msg);
}

}  // namespace

}  // namespace tc::ucp_testing
