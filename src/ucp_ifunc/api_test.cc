// SPDX-License-Identifier: Apache-2.0
//
// The API from outside, with real UCX: a source and a target context in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <threechains/ucp_ifunc.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace {

using ::testing::HasSubstr;

struct Result {
  unsigned long sum = 0, calls = 0, payload_size = 0, payload_address = 0;
  char first = 0;
};

ucp_ifunc_reg_param_t named(const char* name) { return {const_cast<char*>(name), 0, 1}; }

// A context with a worker and memory that UCX allocated.
class Party {
 public:
  explicit Party(size_t size = 1 << 16) : size(size) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM;
    ucp_worker_params_t worker_params{};
    ucp_mem_map_params_t map{};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    map.length = size;
    map.flags = UCP_MEM_MAP_ALLOCATE;
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    if (ucp_init(&params, nullptr, &context) != UCS_OK ||
        ucp_worker_create(context, &worker_params, &worker) != UCS_OK ||
        ucp_mem_map(context, &map, &mapped) != UCS_OK || ucp_mem_query(mapped, &attributes) != UCS_OK)
      std::abort();
    memory = static_cast<char*>(attributes.address);
    std::memset(memory, 17, size);
  }
  ~Party() {
    ucp_mem_unmap(context, mapped);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
  }

  ucs_status_t poll(void* args, size_t at = 0, size_t room = 1 << 14) {
    return ucp_poll_ifunc(context, memory + at, room, args, worker);
  }
  // Polls until something other than "nothing yet" comes.
  ucs_status_t poll_until(void* args) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (unsigned polls = 1; polls % 1024 != 0 || std::chrono::steady_clock::now() < deadline; ++polls)
      if (const auto status = poll(args); status != UCS_ERR_NO_MESSAGE) return status;
    return UCS_ERR_TIMED_OUT;
  }

  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_mem_h mapped = nullptr;
  char* memory = nullptr;
  const size_t size;
};

class Road {
 public:
  Road(Party& from, Party& to) : from_(from), to_(to) {
    ucp_address_t* address = nullptr;
    size_t address_size = 0;
    ucp_worker_get_address(to.worker, &address, &address_size);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = address;
    void* packed = nullptr;
    size_t packed_size = 0;
    if (ucp_ep_create(from.worker, &params, &ep) != UCS_OK ||
        ucp_rkey_pack(to.context, to.mapped, &packed, &packed_size) != UCS_OK ||
        ucp_ep_rkey_unpack(ep, packed, &rkey) != UCS_OK)
      std::abort();
    ucp_rkey_buffer_release(packed);
    ucp_worker_release_address(to.worker, address);
  }
  ~Road() {
    ucp_rkey_destroy(rkey);
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    finish(ucp_ep_close_nbx(ep, &param));
  }
  void finish(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
      ucp_worker_progress(from_.worker);
      ucp_worker_progress(to_.worker);
    }
    ucp_request_free(request);
  }
  ucs_status_t send(ucp_ifunc_msg_t msg, size_t at = 0) {
    const auto status =
        ucp_ifunc_send_nbix(ep, msg, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(to_.memory + at)), rkey);
    if (status == UCS_INPROGRESS) {
      const ucp_request_param_t param{};
      finish(ucp_ep_flush_nbx(ep, &param));
      return UCS_OK;
    }
    return status;
  }

  ucp_ep_h ep = nullptr;
  ucp_rkey_h rkey = nullptr;

 private:
  Party& from_;
  Party& to_;
};

class UcpIfunc : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("UCP_IFUNC_LOG", "off", 0); }
  UcpIfunc() { use("one"); }
  static void use(const std::string& folder) {
    setenv("UCX_IFUNC_LIB_DIR", (std::string(TC_TESTDATA) + "/" + folder).c_str(), 1);
  }
  static ucp_ifunc_h registered(Party& party, const char* name) {
    ucp_ifunc_h ifunc = nullptr;
    EXPECT_EQ(ucp_register_ifunc(party.context, named(name), &ifunc), UCS_OK) << ucp_ifunc_error();
    return ifunc;
  }
  static ucp_ifunc_msg_t message(ucp_ifunc_h ifunc, std::string args = "payload") {
    ucp_ifunc_msg_t msg{};
    EXPECT_EQ(ucp_ifunc_msg_create(ifunc, args.data(), args.size(), &msg), UCS_OK) << ucp_ifunc_error();
    return msg;
  }

  Party source, target;
  Road road{source, target};
  Result result;
};

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

// What lies in a slot may be anything: each frame cut off or damaged at each of its bytes.
class HostileSlot : public UcpIfunc {
 protected:
  // A frame with its code, as it lands.
  std::string frame() {
    auto msg = message(registered(source, "step"));
    EXPECT_EQ(road.send(msg), UCS_OK);
    std::string bytes(target.memory, msg.frame_size);
    std::memset(target.memory, 17, target.size);
    ucp_ifunc_msg_free(msg);
    return bytes;
  }
  ucs_status_t poll_bytes(const std::string& bytes, size_t room) {
    std::memcpy(target.memory, bytes.data(), bytes.size());
    const auto status = target.poll(&result, 0, room);
    std::memset(target.memory, 17, bytes.size());
    return status;
  }
};

TEST_F(HostileSlot, a_buffer_shorter_than_its_frame_is_too_small_whatever_the_frame) {
  const auto bytes = frame();
  for (size_t room = 0; room < bytes.size(); ++room) {
    const auto status = poll_bytes(bytes, room);
    ASSERT_EQ(status, room < 48 ? UCS_ERR_NO_MESSAGE : UCS_ERR_BUFFER_TOO_SMALL) << room;
  }
  EXPECT_EQ(poll_bytes(bytes, bytes.size()), UCS_OK);
}

TEST_F(HostileSlot, a_flipped_bit_gives_a_status_and_never_runs_damaged_code) {
  const auto bytes = frame();
  for (size_t bit = 0; bit < bytes.size() * 8; bit += bit < 2048 ? 1 : 5) {
    const size_t at = bit / 8;
    if (at >= 48 && at < 64) continue;  // payload and its padding: the ifunc's own
    auto damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit % 8);
    const auto before = result.sum;
    const auto status = poll_bytes(damaged, 1 << 14);
    if (status == UCS_OK) {
      // What means nothing: the last bytes are padding, four in front of the bundle are reserved.
      EXPECT_TRUE(at > bytes.size() - 16 || (at >= 64 + 44 && at < 64 + 48)) << "bit " << bit << " of byte " << at;
      ucp_ifunc_release(target.context);
    } else {
      EXPECT_EQ(result.sum, before);
    }
  }
}

TEST_F(HostileSlot, a_frame_that_never_becomes_whole_is_given_up) {
  auto bytes = frame();
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  std::memcpy(target.memory, bytes.data(), bytes.size());
  EXPECT_EQ(target.poll_until(&result), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(target.poll(&result), UCS_ERR_NO_MESSAGE);
  EXPECT_EQ(result.sum, 0u);
}

TEST_F(HostileSlot, a_frame_that_was_put_and_lands_a_second_time_does_not_run_again) {
  auto msg = message(registered(source, "step"));
  ASSERT_EQ(road.send(msg, 4), UCS_OK);  // not a multiple of 8: it is put
  std::string bytes(target.memory + 4, msg.frame_size);
  auto status = UCS_ERR_NO_MESSAGE;
  while (status == UCS_ERR_NO_MESSAGE) {
    bytes.assign(target.memory + 4, msg.frame_size);
    status = target.poll(&result, 4);
  }
  ASSERT_EQ(status, UCS_OK);
  std::memcpy(target.memory + 4, bytes.data(), bytes.size());
  EXPECT_EQ(target.poll(&result, 4), UCS_ERR_NO_MESSAGE);
  EXPECT_EQ(result.sum, 1u);
  ucp_ifunc_msg_free(msg);
}

}  // namespace
