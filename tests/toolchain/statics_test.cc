// SPDX-License-Identifier: Apache-2.0
//
// Static variables keep their values when code compiled for this CPU replaces the first: machine code of the bundle, or
// bitcode compiled in haste.
#include <atomic>
#include <thread>

#include "running_support.h"

#ifdef TC_JIT_PLUGIN

namespace tc::toolchain {
namespace {

class ToolchainStatics : public testing::TestWithParam<SliceForm> {
 protected:
  void load(const Workshop& shop, const std::string& cache_dir = "") {
    target::CodeStoreOptions options;
    options.use_objects = GetParam() == SliceForm::object;
    options.jit_plugin = TC_JIT_PLUGIN;
    options.cache_dir = cache_dir;
    store_ = std::move(*target::CodeStore::create(options, policy_, [](target::Code&) {}));
    auto loaded = store_->load(shop.bundle());
    ASSERT_TRUE(loaded) << loaded.error().message;
    code_ = *loaded;
  }
  void swap() {
    ASSERT_NE(code_->tier.load(), target::Tier::tuned);
    ASSERT_TRUE(store_->wait_until_tuned(60'000));
    ASSERT_EQ(code_->tier.load(), target::Tier::tuned);
    ASSERT_EQ(store_->stats().tuned_swaps, 1u);
  }
  long run(std::string payload = "x") {
    long value = -1;
    target::current_host = &host_;
    code_->entry.load()(payload.data(), payload.size(), &value);
    target::current_host = nullptr;
    return value;
  }

  Host host_;
  target::Policy policy_;
  std::unique_ptr<target::CodeStore> store_;
  target::Code* code_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Replacing, ToolchainStatics, testing::Values(SliceForm::object, SliceForm::bitcode),
                         form_name);

TEST_P(ToolchainStatics, a_counter_goes_on) {
  load(c_file("foo",
              "static long calls;\nstatic long from = 1000;\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; *(long *)t = ++calls + from++; }\n"));
  for (long i = 1; i <= 10; ++i) EXPECT_EQ(run(), 999 + 2 * i);
  swap();
  for (long i = 11; i <= 20; ++i) EXPECT_EQ(run(), 999 + 2 * i);
}

TEST_P(ToolchainStatics, large_tables_are_not_copied_and_not_lost) {
  load(c_file("foo",
              "static long table[1 << 20];\nstatic unsigned long at;\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p;\n"
              "  table[at] = (long)n; at = (at * 7919 + 13) % (1 << 20);\n"
              "  long sum = 0; for (unsigned i = 0; i < 1 << 20; ++i) sum += table[i]; *(long *)t = sum; }\n"));
  for (long i = 1; i <= 5; ++i) EXPECT_EQ(run("123"), 3 * i);
  const auto before = code_->bytes;
  swap();
  for (long i = 6; i <= 10; ++i) EXPECT_EQ(run("123"), 3 * i);
  EXPECT_GT(before, size_t{8} << 20);
}

TEST_P(ToolchainStatics, variables_that_point_to_code_constants_and_each_other_stay_right) {
  load(c_file("foo",
              "static long one(long x) { return x + 1; }\nstatic long two(long x) { return x * 2; }\n"
              "static long (*next)(long) = one;\nstatic const char *word;\nstatic long value = 5;\n"
              "static long *volatile to = &value;\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p;\n"
              "  if (n == 9) { next = two; word = \"several words\"; }\n"
              "  *to = next(*to); if (word) tc_log(1, word); *(long *)t = value; }\n"));
  EXPECT_EQ(run(), 6);
  EXPECT_EQ(run("nine char"), 12);
  swap();
  host_.logged.clear();
  EXPECT_EQ(run(), 24);
  EXPECT_EQ(host_.logged, "several words");
}

TEST_P(ToolchainStatics, an_initialiser_that_has_run_does_not_run_again) {
  Workshop shop;
  shop.file("foo.cc",
            "#include <cstddef>\nstatic long started;\n"
            "static long start(std::size_t n) { ++started; return static_cast<long>(n); }\n"
            "extern \"C\" int __cxa_guard_acquire(long *g) { return *g == 0; }\n"
            "extern \"C\" void __cxa_guard_release(long *g) { *g = 1; }\n"
            "extern \"C\" void foo_main(void*, std::size_t n, void* t) {\n"
            "  static const long x = start(n); *static_cast<long*>(t) = x * 100 + started; }\n");
  shop.request.targets = {x86_64};
  load(shop);
  EXPECT_EQ(run("1234"), 401);
  swap();
  EXPECT_EQ(run("12345678"), 401);
}

TEST_P(ToolchainStatics, thousands_of_variables_are_all_found) {
  std::string text, sum = "0";
  for (int i = 0; i < 2000; ++i) {
    text += fmt::format("static volatile {} v{};\n", i % 3 == 0 ? "char" : (i % 3 == 1 ? "long" : "double"), i);
    sum += fmt::format("\n + (long)(v{0} = v{0} + 1)", i);
  }
  load(c_file("foo",
              text + "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; *(long *)t = " + sum + "; }\n"));
  EXPECT_EQ(run(), 2000);
  swap();
  EXPECT_EQ(run(), 4000);
}

TEST_P(ToolchainStatics, no_increment_is_lost_while_threads_run_the_code_and_it_is_replaced) {
  load(c_file("foo",
              "static long calls;\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n;\n"
              "  *(long *)t = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED); }\n"));
  code_->pinned = true;
  std::atomic<long> done = 0;
  std::atomic<bool> over = false;
  std::thread other([&] {
    for (long value; !over; ++done) code_->entry.load(std::memory_order_acquire)(nullptr, 0, &value);
  });
  long mine = 0;
  for (; mine < 1000; ++mine) run();
  swap();
  for (; mine < 2000; ++mine) run();
  over = true;
  other.join();
  code_->pinned = false;
  store_->housekeeping();
  EXPECT_EQ(run(), mine + done + 1);
}

TEST_P(ToolchainStatics, code_from_the_cache_has_variables_of_its_own) {
  const auto cache = *TemporaryDirectory::create();
  const auto shop = c_file("foo",
                           "static long calls = 7;\n"
                           "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; *(long *)t = ++calls; }\n");
  load(shop, cache.path().string());
  EXPECT_EQ(run(), 8);
  swap();
  EXPECT_EQ(run(), 9);
  load(shop, cache.path().string());  // another node, later
  EXPECT_EQ(run(), 8);
  ASSERT_TRUE(store_->wait_until_tuned(60'000));
  EXPECT_EQ(code_->tier.load(), target::Tier::tuned);
  EXPECT_EQ(run(), 9);
}

TEST_P(ToolchainStatics, memory_of_the_first_code_is_freed_with_the_last) {
  load(c_file("foo",
              "static long table[1 << 17];\n"
              "void foo_main(void *p, size_t n, void *t) { (void)p; *(long *)t = ++table[n]; }\n"));
  EXPECT_EQ(run(), 1);
  swap();
  EXPECT_EQ(run(), 2);
  EXPECT_GT(store_->stats().bytes, size_t{1} << 20);
  store_->evict(code_->id());
  EXPECT_EQ(store_->stats().bytes, 0u);
  EXPECT_EQ(store_->stats().codes, 0u);
}

}  // namespace
}  // namespace tc::toolchain

#endif
