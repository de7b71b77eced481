// SPDX-License-Identifier: Apache-2.0
//
// Bitcode, tuning in the background and the on-disk cache, against a plug-in that compiles at once or for as long as the
// test wants (testing/fake_jit.cc).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/testing/refused_calls.h"
#include "base/testing/run_until.h"
#include "target/code_store.h"
#include "target/last_words.h"
#include "target/testing/object_builder.h"

namespace tc::target {
namespace {

using ::testing::HasSubstr;

Slice slice_for(SliceForm form, SliceRole role, size_t size) {
  Slice slice;
  slice.triple = TargetTriple::host();
  slice.form = form;
  slice.role = role;
  slice.unpacked_size = static_cast<uint32_t>(size);
  return slice;
}

// With bitcode, and with an object slice as well when `object` is set. Object code counts by 1, too.
Bundle bundle_of(const std::string& name, std::string_view orders, bool object = false,
                 SliceRole role = SliceRole::target) {
  Manifest manifest;
  manifest.name = name;
  manifest.entries = entry_main;
  const auto text = as_bytes(orders);
  std::vector<Bytes> stored{Bytes(text.begin(), text.end())};
  manifest.slices.push_back(slice_for(SliceForm::bitcode, role, stored[0].size()));
  if (object) {
    stored.push_back(testing::counting_object().build());
    manifest.slices.push_back(slice_for(SliceForm::object, role, stored[1].size()));
  }
  return std::move(*Bundle::pack(std::move(manifest), std::move(stored)));
}

class Tuning : public ::testing::Test {
 protected:
  Tuning() : plugin_(dlopen(TC_FAKE_JIT, RTLD_NOW | RTLD_LOCAL)) {}
  ~Tuning() override {
    store_.reset();
    EXPECT_EQ(count("fake_jit_live_code"), 0) << "code was not freed";
  }

  CodeStore& store(CodeStoreOptions options = {}) {
    options.jit_plugin = TC_FAKE_JIT;
    store_.reset();
    store_ = std::move(*CodeStore::create(options, policy_, [this](Code& code) { evicted_.push_back(code.name()); }));
    return *store_;
  }
  static uint64_t run(const Code& code) {
    uint64_t value = 0;
    code.entry.load()(nullptr, 0, &value);
    return value;
  }
  // Code whose tuning lasts until let_go(). Returns when it is being compiled.
  Code* load_held(CodeStore& codes) {
    Code* const code = *codes.load(bundle_of("slow", "hold=1"));
    codes.housekeeping();
    EXPECT_TRUE(tc::test::run_until([&] { return is_held(); }, [] { std::this_thread::yield(); }));
    return code;
  }
  bool is_held() const { return count("fake_jit_held") == 1; }
  void let_go() const { (void)count("fake_jit_let_go"); }
  int count(const char* what) const { return reinterpret_cast<int (*)()>(dlsym(plugin_, what))(); }

  void* plugin_;
  Policy policy_;
  std::vector<std::string> evicted_;
  std::unique_ptr<CodeStore> store_;
};

TEST_F(Tuning, bitcode_runs_at_once_and_is_swapped_for_tuned_code) {
  auto& codes = store();
  const Code* const code = load_held(codes);
  EXPECT_EQ(code->tier.load(), Tier::baseline);
  EXPECT_EQ(run(*code), 1u);
  let_go();
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(code->tier.load(), Tier::tuned);
  EXPECT_EQ(run(*code), 1000u);
  EXPECT_EQ(codes.stats().tuned_swaps, 1u);
  EXPECT_EQ(codes.stats().baseline_compiles, 1u);
  EXPECT_EQ(count("fake_jit_live_code"), 1) << "the baseline code is freed after the swap";
}

TEST_F(Tuning, code_that_comes_when_all_other_is_tuned_is_tuned_too) {
  auto& codes = store();
  for (const auto* name : {"first", "second", "third"}) {
    const auto loaded = codes.load(bundle_of(name, ""));
    ASSERT_TRUE(loaded) << loaded.error().message;
    codes.housekeeping();
    ASSERT_TRUE(codes.wait_until_tuned(20'000)) << name;
    EXPECT_EQ((*loaded)->tier.load(), Tier::tuned) << name;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the compiler's thread sleeps
  }
}

TEST_F(Tuning, tuned_code_goes_on_with_the_variables_of_the_code_before) {
  auto& codes = store();
  const Code* const code = *codes.load(bundle_of("counts", "variable=1"));
  EXPECT_EQ(count("fake_jit_given_variables"), 0);
  codes.housekeeping();
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  ASSERT_EQ(code->tier.load(), Tier::tuned);
  EXPECT_EQ(count("fake_jit_given_variables"), 1);
}

TEST_F(Tuning, code_that_may_not_be_exchanged_stays_as_it_is_with_its_variables) {
  auto& codes = store();
  const Code* const counts = *codes.load(bundle_of("counts", "variable=1 stays=1"));
  const Code* const plain = *codes.load(bundle_of("plain", "stays=1"));
  codes.housekeeping();
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(counts->tier.load(), Tier::baseline);
  EXPECT_EQ(run(*counts), 1u);
  EXPECT_EQ(plain->tier.load(), Tier::tuned) << "it has no variables";
}

// As LLVM does with bitcode that it was not made for.
class TuningDeathTest : public Tuning {
 protected:
  class Node final : public IfuncHost {
   public:
    void* data(std::string_view, size_t*) noexcept override { return nullptr; }
    tc_status_t reply(ByteView) noexcept override { return TC_OK; }
    tc_status_t forward(uint32_t, ByteView) noexcept override { return TC_OK; }
    tc_status_t forward_as(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
    tc_status_t inject(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
    void fail(int32_t, std::string_view) noexcept override {}
    void log(int, std::string_view) noexcept override {}
  };
  // Loads code at which the compiler ends the process, and waits for that.
  void load_and_die(const std::string& orders) {
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler
    Node node;
    const LastWords words("node3", LogFormat::text, "node 3 (node3)", "");
    node.use(words);
    auto& codes = store({.node = &node});
    Sender mallory("192.0.2.7");
    mallory.label = "mallory (keyring, line 3)";
    (void)codes.load(bundle_of("sum", orders), mallory);
    (void)codes.wait_until_tuned(20'000);
  }
};

TEST_F(TuningDeathTest, a_compiler_that_ends_the_process_is_told_with_the_code_and_its_sender) {
  constexpr const char* words =
      "node 3 .node3. ended while it compiled ifunc 'sum' .SIGSEGV.: .*; content id [0-9a-f]{12}, sent by mallory "
      ".keyring, line 3.";
  EXPECT_DEATH(load_and_die("crash=baseline"), words);
  EXPECT_DEATH(load_and_die("crash=tuned"), words);
}

// Each such bitcode costs memory for good.
TEST_F(Tuning, a_sender_whose_bitcode_makes_the_compiler_give_up_too_often_is_compiled_for_no_longer) {
  auto& codes = store();
  Sender mallory("192.0.2.7");
  mallory.label = "mallory";
  for (unsigned i = 0; i < FatalBitcode::most; ++i) {
    const auto refused = codes.load(bundle_of("f", fmt::format("fatal=1 number={}", i)), mallory);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, TC_ERR_COMPILE);
  }
  const auto compiles = count("fake_jit_compiles");
  const auto refused = codes.load(bundle_of("g", "plain"), mallory);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_LIMIT);
  EXPECT_THAT(refused.error().message, HasSubstr("16 pieces of bitcode from mallory"));
  EXPECT_EQ(count("fake_jit_compiles"), compiles);
  EXPECT_TRUE(codes.load(bundle_of("h", "plain"), "192.0.2.8"));
}

TEST_F(Tuning, what_makes_the_compiler_give_up_when_it_only_judges_the_code_is_counted_too) {
  auto& codes = store();
  Sender mallory("192.0.2.7");
  mallory.label = "mallory";
  for (unsigned i = 0; i < FatalBitcode::most; ++i) {
    const auto loaded = codes.load(bundle_of("f", fmt::format("variable=1 fatal=judging number={}", i)), mallory);
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_TRUE(codes.wait_until_tuned(20'000));
  }
  const auto refused = codes.load(bundle_of("g", "plain"), mallory);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_LIMIT);
}

TEST(FatalBitcode, a_sender_is_the_same_at_each_of_its_ports) {
  FatalBitcode fatal;
  for (unsigned i = 0; i < FatalBitcode::most; ++i) {
    fatal.count(fmt::format("10.0.0.7:{}, on a trusted network", 40'000 + i));
    fatal.count(fmt::format("[fe80::7]:{}, on a trusted network", 40'000 + i));
  }
  for (const auto* refused : {"10.0.0.7:1, on a trusted network", "[fe80::7]:1, on a trusted network"}) {
    const auto may = fatal.check(refused);
    ASSERT_FALSE(may) << refused;
    EXPECT_THAT(may.error().message, HasSubstr(refused));
  }
  for (const auto* allowed : {"10.0.0.8:40001, on a trusted network", "fe80::7", "fe80:", "bob (keyring, line 2)"})
    EXPECT_TRUE(fatal.check(allowed)) << allowed;
}

TEST(FatalBitcode, senders_beyond_the_first_count_as_one_and_the_node_itself_not_at_all) {
  FatalBitcode fatal;
  for (size_t i = 0; i < FatalBitcode::most_senders; ++i) fatal.count(fmt::format("sender {}", i));
  EXPECT_TRUE(fatal.check("a late one"));
  for (unsigned i = 0; i < FatalBitcode::most; ++i) {
    fatal.count(fmt::format("late {}", i));
    fatal.count("");
  }
  EXPECT_FALSE(fatal.check("a late one"));
  EXPECT_TRUE(fatal.check("sender 7"));
  EXPECT_TRUE(fatal.check(""));
}

// A call can enter it before the node's thread knows of it, and whoever names the place of a crash asks then.
TEST_F(Tuning, code_that_was_tuned_just_now_is_taken_over_without_freeing_what_may_run) {
  auto& codes = store();
  const Code* const code = load_held(codes);
  let_go();
  ASSERT_TRUE(tc::test::run_until([&] { return code->tier.load() == Tier::tuned; }, [] { std::this_thread::yield(); }));
  codes.adopt();
  EXPECT_EQ(codes.stats().tuned_swaps, 1u);
  EXPECT_EQ(count("fake_jit_live_code"), 2);
  codes.housekeeping();
  EXPECT_EQ(count("fake_jit_live_code"), 1);
}

TEST_F(Tuning, an_object_is_swapped_too_and_its_memory_freed) {
  auto& codes = store();
  const auto loaded = codes.load(bundle_of("f", "", true));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->tier.load(), Tier::object);
  const auto object_bytes = (*loaded)->bytes;
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(run(**loaded), 1000u);
  EXPECT_EQ(codes.stats().baseline_compiles, 0u);
  EXPECT_LT((*loaded)->bytes, object_bytes + 4096) << "image and JIT'd code together";
}

TEST_F(Tuning, code_that_runs_keeps_its_old_memory_until_it_returned) {
  auto& codes = store();
  Code* const code = *codes.load(bundle_of("f", ""));
  code->pinned = true;
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(count("fake_jit_live_code"), 2);
  codes.housekeeping();
  EXPECT_EQ(count("fake_jit_live_code"), 2);
  code->pinned = false;
  codes.housekeeping();
  EXPECT_EQ(count("fake_jit_live_code"), 1);
}

TEST_F(Tuning, turned_off_leaves_the_first_tier) {
  CodeStoreOptions options;
  options.tune = false;
  auto& codes = store(options);
  Code* const code = *codes.load(bundle_of("f", ""));
  ASSERT_TRUE(codes.wait_until_tuned(1000));
  EXPECT_EQ(code->tier.load(), Tier::baseline);
  EXPECT_EQ(run(*code), 1u);
}

TEST_F(Tuning, without_objects_the_bitcode_runs) {
  CodeStoreOptions options;
  options.use_objects = false;
  options.tune = false;
  EXPECT_EQ((*store(options).load(bundle_of("f", "", true)))->tier.load(), Tier::baseline);
}

TEST_F(Tuning, code_can_be_evicted_while_it_is_compiled) {
  auto& codes = store();
  codes.evict(load_held(codes)->id());
  EXPECT_TRUE(is_held()) << "evicting waited for the compiler";
  let_go();
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(codes.stats().tuned_swaps, 0u);
  EXPECT_EQ(count("fake_jit_live_code"), 0);
}

TEST_F(Tuning, evicted_code_is_taken_out_of_the_queue) {
  auto& codes = store();
  const int before = count("fake_jit_compiles");
  load_held(codes);
  for (int i = 0; i < 100; ++i) {
    Code* const code = *codes.load(bundle_of(fmt::format("f{}", i), ""));
    codes.housekeeping();
    codes.evict(code->id());
  }
  let_go();
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(count("fake_jit_compiles") - before, 102) << "101 baseline, and one tuned";
}

TEST_F(Tuning, a_store_can_go_while_code_is_compiled) {
  auto& codes = store();
  load_held(codes);
  std::jthread later([&] {  // the end of the store may wait for the compiler
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    let_go();
  });
  store_.reset();
}

// A limit on tasks or memory; then the limit is raised.
TEST_F(Tuning, code_stays_untuned_while_no_thread_can_be_had_and_is_tuned_once_one_can) {
  std::vector<std::string> warned;
  auto& codes = store({.warn = [&](const std::string& what) { warned.push_back(what); }});
  bool is_refused = false;
  Code* code = nullptr;
  std::thread([&] {
    is_refused = tc::test::refuse_threads();
    if (!is_refused) return;
    code = *codes.load(bundle_of("first", ""));
    for (int i = 0; i < 3; ++i) codes.housekeeping();
    EXPECT_FALSE(codes.wait_until_tuned(10));
  }).join();
  if (!is_refused) GTEST_SKIP() << "no system call can be filtered here";
  EXPECT_EQ(code->tier.load(), Tier::baseline);
  EXPECT_EQ(run(*code), 1u);
  ASSERT_EQ(warned.size(), 1u);
  EXPECT_THAT(warned.front(), HasSubstr("stays as it is until a thread can be started: a limit on tasks or memory"));
  EXPECT_TRUE(tc::test::run_until([&] { return code->tier.load() == Tier::tuned; },
                                  [&] {
                                    codes.housekeeping();
                                    std::this_thread::sleep_for(std::chrono::milliseconds(5));
                                  }));
  EXPECT_EQ(warned.size(), 1u);
}

TEST_F(Tuning, code_that_waits_for_a_thread_may_be_evicted) {
  auto& codes = store();
  bool is_refused = false;
  std::thread([&] {
    is_refused = tc::test::refuse_threads();
    if (!is_refused) return;
    const auto id = (*codes.load(bundle_of("first", "")))->id();
    codes.housekeeping();
    codes.evict(id);
  }).join();
  if (!is_refused) GTEST_SKIP() << "no system call can be filtered here";
  EXPECT_TRUE(codes.wait_until_tuned(20'000));
}

TEST_F(Tuning, waiting_ends_at_its_deadline) {
  auto& codes = store();
  load_held(codes);
  EXPECT_FALSE(codes.wait_until_tuned(10));
  let_go();
}

TEST_F(Tuning, bitcode_that_does_not_compile_is_the_compilers_error_with_the_ifuncs_name) {
  const auto loaded = store().load(bundle_of("broken", "bad=1"));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_COMPILE);
  EXPECT_EQ(loaded.error().message, "ifunc 'broken': 'broken' does not compile");
}

TEST_F(Tuning, an_object_whose_bitcode_does_not_compile_goes_on_running) {
  auto& codes = store();
  Code* const code = *codes.load(bundle_of("half", "bad=1", true));
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(code->tier.load(), Tier::object);
  EXPECT_EQ(run(*code), 1u);
}

TEST_F(Tuning, missing_symbols_and_entries_are_named) {
  auto& codes = store();
  const auto needy = codes.load(bundle_of("needy", "needs=launch_missiles"));
  ASSERT_FALSE(needy);
  EXPECT_EQ(needy.error().code, TC_ERR_UNRESOLVED);
  EXPECT_THAT(needy.error().message, HasSubstr("launch_missiles"));
  const auto empty = codes.load(bundle_of("empty", "empty=1"));
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, TC_ERR_MALFORMED);
  EXPECT_THAT(empty.error().message, HasSubstr("ifunc_main"));
}

TEST_F(Tuning, slices_that_come_later_are_kept_and_used) {
  auto& codes = store();
  const auto whole = bundle_of("f", "", true);
  const auto some = whole.bytes_for(2);  // the object alone
  Code* const code = *codes.load(std::move(*Bundle::read_carried(some, 2, whole.id())));
  EXPECT_EQ(code->tier.load(), Tier::object);
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(code->tier.load(), Tier::object);
  const auto before = codes.stats().bytes;
  EXPECT_EQ(*codes.load(whole), code);
  EXPECT_EQ(code->bundle->carried(), 3u);
  EXPECT_EQ(codes.stats().bytes, before + whole.stored(0).size());
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(code->tier.load(), Tier::tuned);
}

// What was compiled meanwhile came of the bundle before.
TEST_F(Tuning, slices_that_come_while_the_code_is_compiled_begin_that_anew) {
  auto& codes = store();
  const auto whole = bundle_of("f", "hold=1", true);
  const auto some = whole.bytes_for(1);  // the bitcode alone
  Code* const code = *codes.load(std::move(*Bundle::read_carried(some, 1, whole.id())));
  codes.housekeeping();
  ASSERT_TRUE(tc::test::run_until([&] { return is_held(); }, [] { std::this_thread::yield(); }));
  EXPECT_EQ(*codes.load(whole), code);
  EXPECT_EQ(code->tier.load(), Tier::baseline);
  ASSERT_TRUE(tc::test::run_until([&] { return codes.wait_until_tuned(1); }, [&] { let_go(); }));
  EXPECT_EQ(code->tier.load(), Tier::tuned);
  EXPECT_EQ(run(*code), 1000u);
  EXPECT_EQ(codes.stats().tuned_swaps, 1u);
}

// To exchange it would leave its users with the variables of the code before.
TEST_F(Tuning, a_library_is_tuned_at_once_and_not_again) {
  ASSERT_TRUE(policy_.allow_export("lib_*"));
  Manifest manifest;
  manifest.name = "lib";
  manifest.entries = entry_main | entry_library;
  manifest.exports = {"lib_add"};
  manifest.slices.push_back(slice_for(SliceForm::bitcode, SliceRole::target, 1));
  auto& codes = store();
  const int before = count("fake_jit_compiles");
  const auto loaded = codes.load(std::move(*Bundle::pack(std::move(manifest), {Bytes(1)})));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->tier.load(), Tier::tuned);
  EXPECT_EQ(run(**loaded), 1000u);
  codes.housekeeping();
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(codes.stats().tuned_swaps, 0u);
  EXPECT_EQ(count("fake_jit_compiles") - before, 1);
}

TEST_F(Tuning, the_budget_counts_what_was_jitted) {
  CodeStoreOptions options;
  options.budget_bytes = 40'000;
  auto& codes = store(options);
  for (int i = 0; i < 200; ++i) {
    const auto loaded = codes.load(bundle_of(fmt::format("f{}", i), ""));
    ASSERT_TRUE(loaded) << loaded.error().message;
    (*loaded)->last_used = static_cast<uint64_t>(i);
    codes.housekeeping();
    ASSERT_LE(codes.stats().bytes, options.budget_bytes);
  }
  codes.wait_until_tuned(20'000);
  codes.housekeeping();
  EXPECT_LE(codes.stats().bytes, options.budget_bytes);
  EXPECT_LE(count("fake_jit_live_code"), 10);
  EXPECT_GT(codes.stats().evictions, 150u);
}

// Two codes, of which `b` runs while both are tuned: its first tier stays beside the tuned one.
class TunedInABudget : public Tuning {
 protected:
  static constexpr size_t tier = 4096;  // what the fake JIT's code takes
  void load_both(size_t budget) {
    evicted_.clear();
    CodeStoreOptions options;
    options.budget_bytes = budget;
    auto& codes = store(options);
    const auto a = codes.load(bundle_of("a", ""));
    const auto b = codes.load(bundle_of("b", ""));
    ASSERT_TRUE(a && b);
    both_ = (*a)->bytes + (*b)->bytes;
    running_ = *b;
    running_->pinned = true;
    ASSERT_EQ(codes.stats().bytes, both_);
    ASSERT_TRUE(codes.wait_until_tuned(20'000));
  }
  size_t bytes_of_both() {
    load_both(1u << 20);
    return both_;
  }
  size_t both_ = 0;
  Code* running_ = nullptr;
};

TEST_F(TunedInABudget, tuned_code_is_counted_as_soon_as_it_is_there_and_what_it_replaced_until_that_is_freed) {
  const auto before = bytes_of_both();
  EXPECT_EQ(store_->stats().bytes, before + tier);
  running_->pinned = false;
  store_->housekeeping();
  EXPECT_EQ(store_->stats().bytes, before);
  store_->evict(running_->id());
  EXPECT_EQ(store_->stats().bytes, before / 2);
}

TEST_F(TunedInABudget, evicts_nothing_while_it_fits_and_the_code_used_longest_ago_for_one_byte_more) {
  const auto needed = bytes_of_both() + tier;
  load_both(needed);
  EXPECT_TRUE(evicted_.empty());
  EXPECT_EQ(store_->stats().bytes, needed);
  load_both(needed - 1);
  EXPECT_THAT(evicted_, ::testing::ElementsAre("a"));
  EXPECT_EQ(store_->stats().bytes, needed - both_ / 2);
  EXPECT_EQ(run(*running_), 1000u);
}

TEST_F(Tuning, slices_that_come_later_and_exceed_the_budget_cost_the_code_used_longest_ago) {
  const auto whole = bundle_of("f", "some=1", true);
  const auto load_late = [&](size_t budget) {
    evicted_.clear();
    CodeStoreOptions options;
    options.tune = false;
    options.budget_bytes = budget;
    auto& codes = store(options);
    ASSERT_TRUE(codes.load(bundle_of("a", "")));
    const auto first = codes.load(*Bundle::read_carried(whole.bytes_for(2), 2, whole.id()));
    ASSERT_TRUE(first);
    (*first)->last_used = 1;  // later than the other: codes of one tick go in any order
    ASSERT_TRUE(codes.load(whole));
    EXPECT_TRUE(evicted_.empty()) << "that waits for the housekeeping: the code may run just now";
    codes.housekeeping();
  };
  load_late(1u << 20);
  const auto needed = store_->stats().bytes;
  load_late(needed);
  EXPECT_TRUE(evicted_.empty());
  load_late(needed - 1);
  EXPECT_THAT(evicted_, ::testing::ElementsAre("a"));
  EXPECT_LT(store_->stats().bytes, needed - 1);
}

class Cached : public Tuning {
 protected:
  Cached() { options_.cache_dir = temporary_.file("cache"); }
  const TemporaryDirectory temporary_ = TemporaryDirectory::create().value();
  CodeStoreOptions options_;
};

TEST_F(Cached, tuned_code_of_an_earlier_process_runs_at_once) {
  store(options_).load(bundle_of("f", ""));
  ASSERT_TRUE(store_->wait_until_tuned(20'000));
  EXPECT_EQ(store_->stats().cache_misses, 1u);
  const int compiled = count("fake_jit_compiles");
  auto& codes = store(options_);
  Code* const code = *codes.load(bundle_of("f", ""));
  EXPECT_EQ(code->tier.load(), Tier::tuned);
  EXPECT_EQ(run(*code), 1000u);
  EXPECT_EQ(codes.stats().cache_hits, 1u);
  EXPECT_EQ(count("fake_jit_compiles"), compiled);
}

TEST_F(Cached, changed_code_does_not_find_the_old_entry) {
  store(options_).load(bundle_of("f", ""));
  ASSERT_TRUE(store_->wait_until_tuned(20'000));
  EXPECT_EQ((*store(options_).load(bundle_of("f", "other=1")))->tier.load(), Tier::baseline);
}

TEST_F(Cached, damaged_entries_are_misses) {
  store(options_).load(bundle_of("f", ""));
  ASSERT_TRUE(store_->wait_until_tuned(20'000));
  store_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(options_.cache_dir))
    std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  auto& codes = store(options_);
  Code* const code = *codes.load(bundle_of("f", ""));
  EXPECT_EQ(code->tier.load(), Tier::baseline);
  ASSERT_TRUE(codes.wait_until_tuned(20'000));
  EXPECT_EQ(run(*code), 1000u);
}

TEST_F(Cached, a_directory_that_cannot_be_had_costs_no_ifunc) {
  options_.cache_dir = "/proc/nowhere";
  EXPECT_TRUE(store(options_).load(bundle_of("f", "")));
}

}  // namespace
}  // namespace tc::target
