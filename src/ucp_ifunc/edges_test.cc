// SPDX-License-Identifier: Apache-2.0
//
// The API's edges: what programs get wrong, what peers lose, and what a process shows of it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "ucp_ifunc/testing/endpoints.h"

namespace tc::ucp_testing {

namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string loose_step(const std::string& folder) {
  return std::string(TC_TESTDATA) + "/" + folder + "/step." + TC_HOST_TRIPLE + ".bc";
}

TEST_F(UcpIfunc, what_could_not_be_made_is_null_and_freed_without_harm) {
  ucp_ifunc_h none = nullptr;
  const auto junk = reinterpret_cast<ucp_ifunc_h>(uintptr_t{0x5a5a5a5a});  // as in memory that was never set
  ucp_llvm_bc_t no_bitcode{};
  ucp_ifunc_h by_name = junk, without_context = junk, of_2021 = junk, from_memory = junk;
  EXPECT_EQ(ucp_register_ifunc(source.context, named("absent"), &by_name), UCS_ERR_NO_ELEM);
  EXPECT_EQ(ucp_register_ifunc(nullptr, named("step"), &without_context), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(ucp_ifunc_2021_register(source.context, "absent", &of_2021), UCS_ERR_NO_ELEM);
  EXPECT_NE(ucp_register_ifunc_im(source.context, named("step"), &no_bitcode, 1, nullptr, 0, &from_memory), UCS_OK);
  for (auto* const handle : {by_name, without_context, of_2021, from_memory}) {
    EXPECT_EQ(handle, none);
    ucp_deregister_ifunc(source.context, handle);
  }
  char byte = 0;
  ucp_ifunc_msg_t msg{junk, &byte, 17};
  EXPECT_EQ(ucp_ifunc_msg_create(nullptr, &byte, 1, &msg), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(msg.ifunc_h, none);
  EXPECT_EQ(msg.frame, nullptr);
  EXPECT_EQ(msg.frame_size, 0u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, calls_without_what_they_need_are_refused) {
  ucp_ifunc_h ifunc = nullptr;
  EXPECT_EQ(ucp_register_ifunc(nullptr, named("step"), &ifunc), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(ucp_register_ifunc(source.context, named(nullptr), &ifunc), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(ucp_register_ifunc(source.context, named("step"), nullptr), UCS_ERR_INVALID_PARAM);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("a name"));
  ucp_ifunc_msg_t msg{nullptr, nullptr, 0};
  char byte = 0;
  EXPECT_EQ(ucp_ifunc_msg_create(nullptr, &byte, 1, &msg), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(ucp_ifunc_msg_create(registered(source, "step"), &byte, 1, nullptr), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(road.send(msg), UCS_ERR_INVALID_PARAM) << "it was never created";
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("ucp_ifunc_msg_create"));
  const ucp_request_param_t nothing{};
  EXPECT_EQ(UCS_PTR_STATUS(ucp_ifunc_am_send_nbx(road.ep, 9, msg, &nothing)), UCS_ERR_INVALID_PARAM);
  void* payload = nullptr;
  EXPECT_EQ(ucp_ifunc_msg_get_payload_ptr(&msg, &payload, nullptr), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(ucp_poll_ifunc(target.context, nullptr, 1 << 14, &result, target.worker), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(ucp_poll_ifunc(nullptr, target.memory, 1 << 14, &result, target.worker), UCS_ERR_INVALID_PARAM);
  ucp_ifunc_msg_free(msg);
  ucp_deregister_ifunc(source.context, nullptr);
}

TEST_F(UcpIfunc, bitcode_in_memory_without_what_it_needs_is_refused) {
  auto bytes = bytes_of(loose_step("one"));
  std::string triple = TC_HOST_TRIPLE;
  ucp_llvm_bc_t bitcode{triple.data(), bytes.data(), static_cast<uint32_t>(bytes.size())},
      empty{triple.data(), nullptr, 9};
  char* no_name[] = {nullptr};
  ucp_ifunc_h ifunc = nullptr;
  const auto registered_as = [&](ucp_llvm_bc_t* bcs, int n, char** deps, int n_deps) {
    return ucp_register_ifunc_im(source.context, named("step"), bcs, n, deps, n_deps, &ifunc);
  };
  EXPECT_EQ(registered_as(&bitcode, 0, nullptr, 0), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(registered_as(&bitcode, -1, nullptr, 0), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(registered_as(nullptr, 1, nullptr, 0), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(registered_as(&empty, 1, nullptr, 0), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(registered_as(&bitcode, 1, nullptr, 1), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(registered_as(&bitcode, 1, no_name, 1), UCS_ERR_INVALID_PARAM);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("library 0"));
  bitcode.size = 0;
  EXPECT_EQ(registered_as(&bitcode, 1, nullptr, 0), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(ifunc, nullptr);
}

TEST_F(UcpIfunc, a_packed_file_comes_before_loose_bitcode_of_that_name) {
  const auto folder = fs::path(TC_TESTDATA) / "both";
  fs::create_directories(folder);
  fs::copy_file(loose_step("one"), folder / (std::string("step.") + TC_HOST_TRIPLE + ".bc"),
                fs::copy_options::overwrite_existing);
  const auto packed = (folder / "step.ifunc").string(), program = std::string(TC_LIBEXEC) + "/ifunc-toolchain";
  fs::remove(packed);
  const auto ten = loose_step("ten");
  ASSERT_EQ(std::system((program + " build --quiet --name step -o " + packed + " " + ten).c_str()), 0);
  use("both");
  auto msg = message(registered(source, "step"));
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(result.sum, 10u) << "step.ifunc adds ten, the loose bitcode one";
  ucp_ifunc_msg_free(msg);

  // A damaged one is told, and not passed over for what lies beside it.
  std::ofstream(packed, std::ios::binary) << "no bundle";
  Party other;
  ucp_ifunc_h ifunc = nullptr;
  EXPECT_EQ(ucp_register_ifunc(other.context, named("step"), &ifunc), UCS_ERR_INVALID_PARAM);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("step.ifunc"));
  fs::remove(packed);
  ASSERT_EQ(ucp_register_ifunc(other.context, named("step"), &ifunc), UCS_OK) << "then the loose one is taken";
}

TEST_F(UcpIfunc, injected_code_may_call_every_function_of_the_api) {
  struct {  // as in testdata/calls.c
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    uint64_t slot;
    ucp_rkey_h rkey;
    int failed_in = 0, done = 0;
  } calls{};
  Road back(target, source);
  calls.context = target.context;
  calls.worker = target.worker;
  calls.ep = back.ep;
  calls.slot = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(source.memory));
  calls.rkey = back.rkey;
  auto msg = message(registered(source, "calls"));
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&calls), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(calls.failed_in, 0) << ucp_ifunc_error();
  EXPECT_EQ(calls.done, 1);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, what_a_poll_refuses_is_logged_with_the_reason) {
  setenv("UCP_IFUNC_LOG", "warn", 1);
  ::testing::internal::CaptureStderr();
  {
    Party loud;
    Road to_loud(source, loud);
    auto msg = message(registered(source, "step"));
    EXPECT_EQ(to_loud.send(msg), UCS_OK);
    EXPECT_EQ(loud.poll_until(&result), UCS_OK);
    ucp_ifunc_release(loud.context);
    EXPECT_EQ(to_loud.send(msg), UCS_OK);
    EXPECT_EQ(loud.poll_until(&result), UCS_ERR_NO_ELEM);
    ucp_ifunc_msg_free(msg);
  }
  const auto log = ::testing::internal::GetCapturedStderr();
  setenv("UCP_IFUNC_LOG", "off", 1);
  EXPECT_THAT(log, HasSubstr("not held here"));
  EXPECT_THAT(log, HasSubstr("ucp_ifunc_forget"));
}

TEST_F(UcpIfunc, a_message_of_a_deregistered_ifunc_takes_its_code_to_a_restarted_peer) {
  auto* const ifunc = registered(source, "step");
  auto msg = message(ifunc);
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK);
  ucp_deregister_ifunc(source.context, ifunc);
  ucp_ifunc_release(target.context);
  ucp_ifunc_forget(road.ep);
  ASSERT_EQ(road.send(msg), UCS_OK);
  EXPECT_EQ(target.poll_until(&result), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(result.sum, 2u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, a_ring_of_slots_is_polled_by_two_threads_and_each_message_runs_once) {
  constexpr size_t slots = 8, slot = 4096;
  auto msg = message(registered(source, "step"));
  Result warm;
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&warm), UCS_OK);
  for (int round = 0; round < 200; ++round) {
    for (size_t i = 0; i < slots; ++i) ASSERT_EQ(road.send(msg, i * slot), UCS_OK);
    Result results[2];
    const auto poll_half = [&](size_t half) {
      for (size_t i = half; i < slots; i += 2)
        while (ucp_poll_ifunc(target.context, target.memory + i * slot, slot, &results[half], nullptr) != UCS_OK) {
        }
    };
    std::thread other(poll_half, 1);
    poll_half(0);
    other.join();
    ASSERT_EQ(results[0].sum + results[1].sum, slots);
  }
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, nothing_that_is_polled_can_be_executed_and_nothing_executable_can_be_written) {
  auto msg = message(registered(source, "step"), std::string(3000, 'x'));
  ASSERT_EQ(road.send(msg), UCS_OK);
  ASSERT_EQ(target.poll_until(&result), UCS_OK);
  std::ifstream maps("/proc/self/maps");
  const auto slot = reinterpret_cast<uintptr_t>(target.memory);
  size_t executable = 0, of_slot = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string rights;
    words >> std::hex >> begin >> dash >> end >> rights;
    executable += rights[2] == 'x';
    EXPECT_FALSE(rights[1] == 'w' && rights[2] == 'x') << line;
    if (begin <= slot && slot < end) {
      ++of_slot;
      EXPECT_EQ(rights[2], '-') << line;
    }
  }
  EXPECT_GT(executable, 0u);
  EXPECT_EQ(of_slot, 1u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, a_full_frame_that_a_slot_has_no_room_for_is_refused_with_both_sizes) {
  auto msg = message(registered(source, "step"));
  ASSERT_EQ(road.send(msg), UCS_OK);
  EXPECT_EQ(target.poll(&result, 0, 256), UCS_ERR_BUFFER_TOO_SMALL);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr(std::to_string(msg.frame_size)));
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("256"));
  // Its code was refused: the source learns of it, and sends it to a slot with room.
  ASSERT_EQ(road.send(msg), UCS_OK);
  EXPECT_EQ(target.poll(&result, 0, 256), UCS_ERR_NO_ELEM);
  ucp_ifunc_forget(road.ep);
  ASSERT_EQ(road.send(msg), UCS_OK);
  EXPECT_EQ(target.poll_until(&result), UCS_OK);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, a_frame_that_lands_in_pieces_runs_when_the_last_one_is_there) {
  auto msg = message(registered(source, "step"));
  ASSERT_EQ(road.send(msg, 4), UCS_OK);  // put, with checks over all of it
  std::string bytes;
  for (int spins = 0; spins < 1'000'000 && bytes.find("payload") == std::string::npos; ++spins) {
    ucp_worker_progress(target.worker);
    ucp_worker_progress(source.worker);
    bytes.assign(target.memory + 4, msg.frame_size);
  }
  std::memset(target.memory, 17, target.size);
  // Tail first, then the front, a hole in the middle last.
  const size_t third = bytes.size() / 3, two = 2 * third;
  std::memcpy(target.memory + two, bytes.data() + two, bytes.size() - two);
  EXPECT_EQ(target.poll(&result), UCS_ERR_NO_MESSAGE);
  std::memcpy(target.memory, bytes.data(), third);
  EXPECT_EQ(target.poll(&result), UCS_ERR_NO_MESSAGE);
  std::memcpy(target.memory + third, bytes.data() + third, third);
  EXPECT_EQ(target.poll(&result), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(result.sum, 1u);
  ucp_ifunc_msg_free(msg);
}

TEST_F(UcpIfunc, each_life_of_a_peer_gets_the_code_once) {
  auto msg = message(registered(source, "step"));
  for (int life = 0; life < 3; ++life) {
    auto peer = std::make_unique<Party>();
    auto way = std::make_unique<Road>(source, *peer);
    ASSERT_EQ(way->send(msg), UCS_OK);
    ASSERT_EQ(peer->poll_until(&result), UCS_OK) << ucp_ifunc_error();
    ASSERT_EQ(way->send(msg), UCS_OK) << "cached now";
    ASSERT_EQ(peer->poll_until(&result), UCS_OK);
  }
  EXPECT_EQ(result.sum, 6u);
  ucp_ifunc_msg_free(msg);
}

}  // namespace

}  // namespace tc::ucp_testing
