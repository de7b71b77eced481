// SPDX-License-Identifier: Apache-2.0
//
// Libraries that arrive by the papers' API, and replace each other while any thread may run their users.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "ucp_ifunc/testing/endpoints.h"

namespace tc::ucp_testing {

namespace {

// As testdata/asks.c has it.
struct Answer {
  int first = 0, second = 0;
  unsigned long calls = 0;
  void (*between)(void*) = nullptr;
  void* with = nullptr;
};

// A slot in plain memory, written by copying frames: any thread may have its own.
class Slot {
 public:
  explicit Slot(ucp_context_h context) : context_(context) {}
  ucs_status_t run(const ucp_ifunc_msg_t& msg, void* args) {
    if (bytes_.size() < msg.frame_size) bytes_.resize(msg.frame_size);
    std::memcpy(bytes_.data(), msg.frame, msg.frame_size);
    return ucp_poll_ifunc(context_, bytes_.data(), bytes_.size(), args, nullptr);
  }

 private:
  ucp_context_h context_;
  std::vector<char> bytes_;
};

class UcpLibrary : public UcpIfunc, public ::testing::WithParamInterface<std::pair<const char*, const char*>> {
 protected:
  UcpLibrary() { unsetenv("UCP_IFUNC_ALLOW_EXPORT"); }
  ~UcpLibrary() override {
    for (auto& msg : messages_) ucp_ifunc_msg_free(msg);
  }
  void allow(const char* rule = "version_*") {
    ASSERT_EQ(ucp_ifunc_allow_export(target.context, rule), UCS_OK) << ucp_ifunc_error();
  }
  ucp_ifunc_msg_t made(const char* folder, const char* name) {
    use(folder);
    messages_.push_back(message(registered(source, name), ""));
    return messages_.back();
  }
  ucp_ifunc_msg_t library(const char* name) { return made(GetParam().first, name); }
  ucp_ifunc_msg_t user() { return made(GetParam().second, "asks"); }
  uint64_t stat(const char* name) {
    uint64_t value = 0;
    EXPECT_EQ(ucp_ifunc_stat(target.context, name, &value), UCS_OK) << ucp_ifunc_error();
    return value;
  }
  // Over the wire.
  ucs_status_t sent(ucp_ifunc_msg_t msg, void* args = nullptr) {
    EXPECT_EQ(road.send(msg), UCS_OK) << ucp_ifunc_error();
    return target.poll_until(args);
  }
  int asked(ucp_ifunc_msg_t msg) {
    Answer answer;
    EXPECT_EQ(sent(msg, &answer), UCS_OK) << ucp_ifunc_error();
    EXPECT_EQ(answer.first, answer.second);
    return answer.first;
  }

 private:
  std::vector<ucp_ifunc_msg_t> messages_;
};

TEST_P(UcpLibrary, ifuncs_that_come_later_link_to_it_and_a_newer_version_rebinds_them) {
  allow();
  const auto one = library("version1"), two = library("version2"), asks = user();
  ASSERT_EQ(sent(one), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(asked(asks), 1);
  ASSERT_EQ(sent(two), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(asked(asks), 2);
  EXPECT_EQ(stat("rebinds"), 1u);
  EXPECT_EQ(stat("codes"), 2u) << "the old version is gone";
  EXPECT_EQ(stat("retired"), 0u);
  // The older version was sent to this endpoint before; it comes back all the same.
  ASSERT_EQ(sent(one), UCS_OK) << ucp_ifunc_error();
  EXPECT_EQ(asked(asks), 1);
  EXPECT_EQ(stat("rebinds"), 2u);
}

TEST_P(UcpLibrary, the_2021_form_takes_libraries_too) {
  allow();
  const auto send = [&](const char* folder, const char* name, void* args) {
    use(folder);
    ucp_ifunc_h ifunc = nullptr;
    EXPECT_EQ(ucp_ifunc_2021_register(source.context, name, &ifunc), UCS_OK) << ucp_ifunc_error();
    const auto msg = message(ifunc, "");
    EXPECT_EQ(road.send(msg), UCS_OK) << ucp_ifunc_error();
    auto status = UCS_ERR_NO_MESSAGE;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (status == UCS_ERR_NO_MESSAGE && std::chrono::steady_clock::now() < deadline)
      status = ucp_ifunc_2021_poll(target.context, target.memory, 1 << 14, args);
    ucp_ifunc_msg_free(msg);
    ucp_deregister_ifunc(source.context, ifunc);
    return status;
  };
  for (const auto& [library, version] : {std::pair("version1", 1), std::pair("version2", 2)}) {
    ASSERT_EQ(send(GetParam().first, library, nullptr), UCS_OK) << ucp_ifunc_error();
    Answer answer;
    ASSERT_EQ(send(GetParam().second, "asks", &answer), UCS_OK) << ucp_ifunc_error();
    EXPECT_EQ(answer.first, version);
    EXPECT_EQ(answer.second, version);
  }
}

TEST_P(UcpLibrary, the_version_that_is_here_can_be_sent_again_and_keeps_its_data) {
  allow();
  const auto one = library("version1"), asks = user();
  ASSERT_EQ(sent(one), UCS_OK);
  EXPECT_EQ(asked(asks), 1);
  ASSERT_EQ(sent(one), UCS_OK);
  Answer answer;
  ASSERT_EQ(sent(asks, &answer), UCS_OK);
  EXPECT_EQ(answer.calls, 4u);
  ASSERT_EQ(sent(library("version2")), UCS_OK);
  ASSERT_EQ(sent(asks, &answer), UCS_OK);
  EXPECT_EQ(answer.calls, 2u) << "a newer version has data of its own";
}

TEST_P(UcpLibrary, a_call_in_progress_finishes_in_the_old_version_which_is_freed_after) {
  allow();
  const auto one = library("version1"), two = library("version2"), asks = user();
  ASSERT_EQ(sent(one), UCS_OK);
  std::atomic<int> step{0};
  Answer answer;
  answer.with = &step;
  answer.between = [](void* with) {
    auto& at = *static_cast<std::atomic<int>*>(with);
    at = 1;
    while (at != 2) std::this_thread::yield();
  };
  std::thread caller([&] { EXPECT_EQ(Slot(target.context).run(asks, &answer), UCS_OK) << ucp_ifunc_error(); });
  while (step != 1) std::this_thread::yield();
  ASSERT_EQ(sent(two), UCS_OK) << ucp_ifunc_error();
  EXPECT_GE(stat("retired"), 2u) << "the library, and what was linked to it: one piece, or a second one that is tuned";
  EXPECT_EQ(asked(asks), 2) << "calls that begin now are in the new version";
  step = 2;
  caller.join();
  EXPECT_EQ(answer.first, 1);
  EXPECT_EQ(answer.second, 1);
  EXPECT_EQ(stat("retired"), 0u);
}

TEST_P(UcpLibrary, an_ifunc_may_replace_its_own_library_while_it_runs) {
  allow();
  const auto one = library("version1"), two = library("version2"), asks = user();
  ASSERT_EQ(sent(one), UCS_OK);
  struct With {
    ucp_context_h context;
    ucp_ifunc_msg_t msg;
    ucs_status_t status;
  } with{target.context, two, UCS_ERR_IO_ERROR};
  Answer answer;
  answer.with = &with;
  answer.between = [](void* given) {
    auto& now = *static_cast<With*>(given);
    now.status = Slot(now.context).run(now.msg, nullptr);
  };
  ASSERT_EQ(sent(asks, &answer), UCS_OK);
  EXPECT_EQ(with.status, UCS_OK);
  EXPECT_EQ(answer.second, 1);
  EXPECT_EQ(asked(asks), 2);
  EXPECT_EQ(stat("retired"), 0u);
}

TEST_P(UcpLibrary, threads_that_call_while_versions_change_are_each_answered_by_one_version) {
  allow();
  const ucp_ifunc_msg_t versions[] = {library("version1"), library("version2")};
  const auto asks = user();
  ASSERT_EQ(sent(versions[0]), UCS_OK);
  EXPECT_EQ(asked(asks), 1);
  std::atomic<bool> stop{false};
  std::atomic<unsigned> calls{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      Slot slot(target.context);
      while (!stop) {
        Answer answer;
        if (slot.run(asks, &answer) != UCS_OK || answer.first != answer.second) ++wrong;
        ++calls;
      }
    });
  constexpr unsigned swaps = 25;
  Slot slot(target.context);
  for (unsigned i = 1; i <= swaps; ++i) {
    const unsigned before = calls;
    EXPECT_EQ(slot.run(versions[i % 2], nullptr), UCS_OK) << ucp_ifunc_error();
    Answer answer;
    EXPECT_EQ(slot.run(asks, &answer), UCS_OK);
    EXPECT_EQ(answer.first, static_cast<int>(i % 2) + 1) << "calls that begin after the swap are in the new version";
    while (calls < before + 3) std::this_thread::yield();
  }
  stop = true;
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(stat("rebinds"), swaps);
  EXPECT_EQ(stat("retired"), 0u) << "a steady stream of calls holds nothing up for good";
  EXPECT_EQ(stat("codes"), 2u);
}

TEST_P(UcpLibrary, active_messages_bring_libraries_too) {
  allow();
  ASSERT_EQ(ucp_ifunc_am_register(target.worker, target.context, 5, &result), UCS_OK);
  ucp_request_param_t param{};
  for (const auto& msg : {library("version1"), library("version2")}) {
    const auto loads = stat("code-loads");
    auto* const request = ucp_ifunc_am_send_nbx(road.ep, 5, msg, &param);
    ASSERT_FALSE(UCS_PTR_IS_ERR(request));
    road.finish(request);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (stat("code-loads") == loads && std::chrono::steady_clock::now() < deadline) {
      ucp_worker_progress(source.worker);
      ucp_worker_progress(target.worker);
    }
  }
  EXPECT_EQ(asked(user()), 2);
}

TEST_P(UcpLibrary, a_version_that_lacks_what_is_used_is_refused_and_changes_nothing) {
  allow();
  const auto asks = user();
  ASSERT_EQ(sent(library("version1")), UCS_OK);
  EXPECT_EQ(asked(asks), 1);
  EXPECT_EQ(sent(library("less")), UCS_ERR_UNSUPPORTED);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("ifunc 'asks', which uses it here, does not link to this version"));
  EXPECT_EQ(asked(asks), 1);
  EXPECT_EQ(stat("rebinds"), 0u);
}

TEST_P(UcpLibrary, a_user_that_came_first_is_refused_by_symbol_and_may_be_sent_again) {
  allow();
  const auto asks = user();
  EXPECT_EQ(sent(asks), UCS_ERR_UNSUPPORTED);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("version_"));
  ASSERT_EQ(sent(library("version1")), UCS_OK);
  ucp_ifunc_forget(road.ep);  // as for any code that was refused
  EXPECT_EQ(asked(asks), 1);
}

INSTANTIATE_TEST_SUITE_P(LibraryAndUser, UcpLibrary,
                         ::testing::Values(std::pair("object", "object"), std::pair("bitcode", "bitcode"),
                                           std::pair("object", "bitcode"), std::pair("bitcode", "object")),
                         [](const auto& test) { return std::string(test.param.first) + "_" + test.param.second; });

using UcpExports = UcpLibrary;

TEST_P(UcpExports, nothing_is_exported_unless_the_program_or_its_operator_says_so) {
  const auto one = library("version1");
  EXPECT_EQ(sent(one), UCS_ERR_REJECTED);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("UCP_IFUNC_ALLOW_EXPORT=version_"));
  allow("version_calls,version_n*");
  EXPECT_EQ(sent(one), UCS_OK) << ucp_ifunc_error();
}

TEST_P(UcpExports, the_operator_says_so_by_the_environment) {
  setenv("UCP_IFUNC_ALLOW_EXPORT", "version_*", 1);
  Party other;
  Slot slot(other.context);
  EXPECT_EQ(slot.run(library("version1"), nullptr), UCS_OK) << ucp_ifunc_error();
  unsetenv("UCP_IFUNC_ALLOW_EXPORT");
}

TEST_P(UcpExports, a_rule_with_a_host_is_no_rule_here) {
  EXPECT_EQ(ucp_ifunc_allow_export(target.context, "version_*@10.0.0.1"), UCS_ERR_INVALID_PARAM);
  EXPECT_THAT(ucp_ifunc_error(), HasSubstr("do not say where they come from"));
  EXPECT_EQ(ucp_ifunc_allow_export(target.context, nullptr), UCS_ERR_INVALID_PARAM);
  uint64_t untouched = 7;
  EXPECT_EQ(ucp_ifunc_stat(target.context, "nonsense", &untouched), UCS_ERR_NO_ELEM);
  EXPECT_EQ(untouched, 7u);
}

TEST_P(UcpExports, a_library_that_was_received_can_be_sent_on_by_its_name) {
  allow();
  ASSERT_EQ(sent(library("version2")), UCS_OK);
  use("empty");
  ucp_ifunc_h again = nullptr;
  ASSERT_EQ(ucp_register_ifunc(target.context, named("version"), &again), UCS_OK) << ucp_ifunc_error();
  auto msg = message(again, "");
  Party third;
  ASSERT_EQ(ucp_ifunc_allow_export(third.context, "*"), UCS_OK);
  Slot slot(third.context);
  EXPECT_EQ(slot.run(msg, nullptr), UCS_OK) << ucp_ifunc_error();
  ucp_ifunc_msg_free(msg);
}

TEST_P(UcpExports, what_is_sent_on_by_the_name_is_the_version_that_came_last) {
  allow();
  Party third;
  ASSERT_EQ(ucp_ifunc_allow_export(third.context, "*"), UCS_OK);
  Slot slot(third.context);
  for (const auto& [name, version] : {std::pair("version1", 1), std::pair("version2", 2), std::pair("version1", 1)}) {
    ASSERT_EQ(sent(library(name)), UCS_OK) << ucp_ifunc_error();
    use("empty");
    auto* const ifunc = registered(target, "version");
    const auto msg = message(ifunc, "");
    EXPECT_EQ(slot.run(msg, nullptr), UCS_OK) << ucp_ifunc_error();
    ucp_ifunc_msg_free(msg);
    ucp_deregister_ifunc(target.context, ifunc);
    Answer answer;
    EXPECT_EQ(slot.run(user(), &answer), UCS_OK) << ucp_ifunc_error();
    EXPECT_EQ(answer.first, version);
  }
}

INSTANTIATE_TEST_SUITE_P(Object, UcpExports, ::testing::Values(std::pair("object", "object")),
                         [](const auto& test) { return std::string(test.param.first); });

}  // namespace

}  // namespace tc::ucp_testing
