// SPDX-License-Identifier: Apache-2.0
//
// Code that this process links, from bitcode and from objects, and another one runs.
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <filesystem>

#include "memory/testing/other_process.h"
#include "target/code_store.h"
#include "target/executor.h"
#include "target/testing/jit_test_base.h"
#include "target/testing/object_builder.h"

namespace tc::target::jit {
namespace {

using memory::testing::Answer;
using memory::testing::in_other_process;

// As testdata/foreign.c has it.
struct Told {
  unsigned id;
  int calls, cube_root;
  unsigned long cleared;
  char word[16];
};

// Functions of the "other process": other ones than this process would give, so that the difference shows.
unsigned foreign_id() { return 4711; }
int memsets = 0;
void* foreign_memset(void* at, int value, size_t bytes) {
  ++memsets;
  for (size_t i = 0; i < bytes; ++i) static_cast<volatile char*>(at)[i] = static_cast<char>(value);
  return at;
}
double foreign_cbrt(double x) { return std::cbrt(x) + 100; }

Result<void*> foreign_symbol(const std::string& library, const std::string& symbol) {
  if (library == "libm.so.6" && symbol.empty()) return nullptr;
  if (library == "libm.so.6" && symbol == "cbrt") return reinterpret_cast<void*>(&foreign_cbrt);
  if (library.empty() && symbol == "tc_id") return reinterpret_cast<void*>(&foreign_id);
  if (library.empty() && symbol == "memset") return reinterpret_cast<void*>(&foreign_memset);
  return fail(TC_ERR_UNRESOLVED, "the other process has no {} {}", library, symbol);
}

Bundle bitcode_bundle(Bytes bitcode) {
  auto plain = target::testing::bundle_with("foreign", std::move(bitcode), {"libm.so.6"});
  auto manifest = plain.manifest();
  manifest.slices[0].form = SliceForm::bitcode;
  return *Bundle::pack(manifest, {*plain.unpack(0)});
}

class Foreign : public JitTest {
 protected:
  void SetUp() override {
    JitTest::SetUp();
    policy_.allow_library("libm.so.6");
    auto arena = memory::Arena::create(memory::Arena::Kind::exported);
    if (!arena && arena.error().code == TC_ERR_UNSUPPORTED) GTEST_SKIP() << arena.error().message;
    ASSERT_TRUE(arena) << arena.error().message;
    arena_ = std::move(*arena);
  }
  CodeStore& store(CodeStoreOptions options = {}) {
    options.jit_plugin = TC_JIT_PLUGIN;
    store_ = std::move(*CodeStore::create(options, policy_, nullptr));
    return *store_;
  }
  // Of 201 bytes: the third word, and the cube root of 28.
  static void expect_right(const Told& told, int calls) {
    EXPECT_EQ(told.id, 4711u);
    EXPECT_EQ(told.calls, calls);
    EXPECT_EQ(told.cube_root, 103);
    EXPECT_EQ(told.cleared, 201u);
    EXPECT_STREQ(told.word, "one");
  }
  Told run_there(const Code& code) {
    const Answer<Told> told;
    const auto entry = code.entry.load();
    EXPECT_EQ(in_other_process(store_->exported(), [&] { entry(nullptr, 201, told.get()); }), 0);
    return *told;
  }

  Policy policy_{foreign_symbol};
  std::unique_ptr<memory::Arena> arena_;
  std::unique_ptr<CodeStore> store_;
};

TEST_F(Foreign, code_that_the_jit_links_into_an_exported_arena_runs_in_another_process_alone) {
  for (const auto effort : {Effort::baseline, Effort::tuned}) {
    const auto code = jit_->link(compiled("helper_one", effort), "one", resolver(), {}, arena_.get());
    ASSERT_TRUE(code) << code.error().message;
    EXPECT_GT(arena_->used_bytes(), 0u);
    const auto entry = function<int(int)>(**code, "one_main");
    const auto* const state = static_cast<const int*>((*code)->symbol("state"));
    const Answer<int> answer;
    EXPECT_EQ(in_other_process(arena_->exported(), [&] { *answer = entry(0); }), 0);
    EXPECT_EQ(*answer, 11);
    EXPECT_EQ(*state, 11) << "its variable is shared";
    EXPECT_DEATH(entry(0), "");
  }
  EXPECT_EQ(arena_->used_bytes(), 0u);
}

TEST_F(Foreign, code_that_is_freed_is_traps_in_the_other_process) {
  auto code = jit_->link(compiled("helper_one", Effort::baseline), "one", resolver(), {}, arena_.get());
  ASSERT_TRUE(code) << code.error().message;
  const auto entry = function<int(int)>(**code, "one_main");
  code->reset();
  const int status = in_other_process(arena_->exported(), [&] { entry(0); });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTRAP);
}

TEST_F(Foreign, a_link_that_fails_leaves_nothing_in_the_arena) {
  const auto code = jit_->link(compiled("missing", Effort::baseline), "missing", resolver(), {}, arena_.get());
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, TC_ERR_UNRESOLVED);
  EXPECT_EQ(arena_->used_bytes(), 0u);
}

// Its frame table would be read here, and stay known for the addresses of what comes after it.
TEST_F(Foreign, the_unwinder_of_this_process_does_not_know_code_of_another_one) {
  struct Bases {
    void *text, *data, *function;
  };
  const auto find = reinterpret_cast<const void* (*)(void*, Bases*)>(::dlsym(RTLD_DEFAULT, "_Unwind_Find_FDE"));
  if (find == nullptr) GTEST_SKIP() << "this unwinder cannot be asked";
  const auto object = compiled("helper_one", Effort::baseline);
  Bases bases{};
  for (auto* const arena : {static_cast<memory::Arena*>(nullptr), arena_.get()}) {
    const auto code = jit_->link(object, "one", resolver(), {}, arena);
    ASSERT_TRUE(code) << code.error().message;
    const auto* const frame = find(static_cast<std::byte*>((*code)->symbol("one_main")) + 1, &bases);
    EXPECT_EQ(frame == nullptr, arena != nullptr);
  }
}

TEST_F(Foreign, exceptions_pass_when_the_other_process_registers_the_frames) {
  const auto register_frames = reinterpret_cast<void (*)(void*)>(::dlsym(RTLD_DEFAULT, "__register_frame"));
  const auto from_process = [](const std::string& name) -> Result<void*> {
    if (void* const address = ::dlsym(RTLD_DEFAULT, name.c_str())) return address;
    return fail(TC_ERR_UNRESOLVED, "{} is not in this process", name);
  };
  const auto code = jit_->link(compiled("exception", Effort::tuned), "exception", from_process, {}, arena_.get());
  ASSERT_TRUE(code) << code.error().message;
  ASSERT_NE((*code)->frames(), nullptr);
  const auto entry = function<int(int, int*)>(**code, "exception_main");
  const Answer<int> answer, cleaned;
  const auto body = [&] {
    register_frames((*code)->frames());
    *answer = entry(42, cleaned.get());
  };
  EXPECT_EQ(in_other_process(arena_->exported(), body), 0);
  EXPECT_EQ(*answer, -42);
  EXPECT_EQ(*cleaned, 1);
}

TEST_F(Foreign, bitcode_in_a_store_runs_in_the_other_process_with_the_functions_of_that) {
  CodeStoreOptions options;
  options.tune = false;
  auto& codes = store(options);
  const auto code = codes.load(bitcode_bundle(test_file("foreign.bc")));
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ((*code)->tier.load(), Tier::baseline);
  expect_right(run_there(**code), 41);
  expect_right(run_there(**code), 42);
  ASSERT_EQ((*code)->variables.count("tc_variable_0"), 1u);
  auto* const calls = static_cast<int*>((*code)->variables.at("tc_variable_0"));
  EXPECT_EQ(*calls, 42);
  *calls = 99;
  expect_right(run_there(**code), 100);
}

TEST_F(Foreign, tuned_code_takes_the_place_of_the_first_and_keeps_its_variables) {
  auto& codes = store();
  const auto code = codes.load(bitcode_bundle(test_file("foreign.bc")));
  ASSERT_TRUE(code) << code.error().message;
  expect_right(run_there(**code), 41);
  ASSERT_TRUE(codes.wait_until_tuned(60'000));
  EXPECT_EQ((*code)->tier.load(), Tier::tuned);
  expect_right(run_there(**code), 42);
}

TEST_F(Foreign, code_from_the_disk_cache_is_linked_for_the_other_process) {
  const auto directory = TemporaryDirectory::create().value();
  CodeStoreOptions options;
  options.cache_dir = directory.file("cache");
  ASSERT_TRUE(store(options).load(bitcode_bundle(test_file("foreign.bc"))));
  ASSERT_TRUE(store_->wait_until_tuned(60'000));
  const auto code = store(options).load(bitcode_bundle(test_file("foreign.bc")));
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ((*code)->tier.load(), Tier::tuned);
  expect_right(run_there(**code), 41);
}

TEST_F(Foreign, a_symbol_that_the_other_process_does_not_have_is_named) {
  policy_.allow_library("libz.so.1");
  auto plain = bitcode_bundle(test_file("foreign.bc"));
  auto manifest = plain.manifest();
  manifest.dependencies = {};
  const auto refused = store().load(*Bundle::pack(manifest, {*plain.unpack(0)}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_UNRESOLVED);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("'cbrt'"));
  manifest.dependencies = {"libz.so.1"};
  const auto unopened = store().load(*Bundle::pack(manifest, {*plain.unpack(0)}));
  ASSERT_FALSE(unopened);
  EXPECT_THAT(unopened.error().message, ::testing::HasSubstr("the other process has no libz.so.1"));
}

TEST_F(Foreign, an_object_in_a_store_runs_in_the_other_process) {
  auto object = target::testing::counting_object();
  object.data.resize(16);
  object.symbols.push_back({.name = "tc_variable_0", .where = target::testing::ObjectBuilder::In::data, .offset = 8});
  const auto code = store().load(target::testing::bundle_with("count", object.build()));
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ((*code)->tier.load(), Tier::object);
  const auto entry = (*code)->entry.load();
  auto* const variable = static_cast<uint64_t*>((*code)->variables.at("tc_variable_0"));
  *variable = 41;
  EXPECT_EQ(in_other_process(store_->exported(), [&] { entry(nullptr, 0, variable); }), 0);
  EXPECT_EQ(*variable, 42u);
  EXPECT_DEATH(entry(nullptr, 0, variable), "");
  store_->evict((*code)->id());
  const int status = in_other_process(store_->exported(), [&] { entry(nullptr, 0, variable); });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTRAP);
}

TEST_F(Foreign, code_knows_the_place_of_an_address) {
  auto& codes = store();
  const auto object = codes.load(target::testing::bundle_with("count", target::testing::counting_object().build()));
  const auto bitcode = codes.load(bitcode_bundle(test_file("foreign.bc")));
  ASSERT_TRUE(object && bitcode);
  for (const auto* const code : {*object, *bitcode}) {
    const auto entry = reinterpret_cast<uintptr_t>(code->entry.load());
    EXPECT_TRUE(code->holds(entry + 3));
    EXPECT_EQ(code->place_of(entry + 3).symbol, "ifunc_main");
    EXPECT_EQ(code->place_of(entry + 3).offset, 3u);
    for (const auto elsewhere : {uintptr_t{0}, codes.exported().address - 1, codes.exported().address + (16u << 20)})
      EXPECT_FALSE(code->holds(elsewhere));
  }
  EXPECT_FALSE((*object)->holds(reinterpret_cast<uintptr_t>((*bitcode)->entry.load())));
}

TEST_F(Foreign, a_store_knows_the_frames_of_the_code_that_runs) {
  auto& codes = store();
  const auto code = codes.load(bitcode_bundle(test_file("foreign.bc")));
  ASSERT_TRUE(code) << code.error().message;
  const auto baseline = (*code)->entry.load();
  void* const frames = codes.frames_of(**code, baseline);
  EXPECT_EQ(frames, (*code)->memory.jitted.frames());
  ASSERT_TRUE(codes.wait_until_tuned(60'000));
  const auto tuned = (*code)->entry.load();
  EXPECT_EQ(codes.frames_of(**code, tuned), (*code)->memory.jitted.frames());
  EXPECT_EQ(codes.frames_of(**code, baseline), frames) << "its variables keep the first code";
  EXPECT_EQ(codes.frames_of(**code, nullptr), nullptr);
}

#if defined(__x86_64__)
TEST_F(Foreign, an_object_calls_the_functions_of_the_other_process) {
  const auto code =
      store().load(target::testing::bundle_with("calls", target::testing::calling_object("memset").build()));
  ASSERT_TRUE(code) << code.error().message;
  const Answer<int> answer;
  const auto body = [&, entry = (*code)->entry.load()] {
    char bytes[8];
    memsets = 0;
    entry(bytes, 0, nullptr);
    *answer = memsets;
  };
  EXPECT_EQ(in_other_process(store_->exported(), body), 0);
  EXPECT_EQ(*answer, 1);
}
#endif

TEST_F(Foreign, a_store_for_this_process_has_nothing_to_export) {
  Policy here;
  const auto codes = std::move(*CodeStore::create({}, here, nullptr));
  EXPECT_EQ(codes->exported().code, -1);
}

}  // namespace
}  // namespace tc::target::jit
