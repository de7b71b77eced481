// SPDX-License-Identifier: Apache-2.0
//
// Random programs do at a node what they do in the process that compiled them, and keep doing so when their code is replaced by
// code for this CPU. By hand, with as many as one likes:
//
//     TC_RANDOM_PROGRAMS=20000 TC_RANDOM_SEED=1 build/release/bin/toolchain_test --gtest_filter='*RandomPrograms*'
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "random_program.h"
#include "running_support.h"

#ifdef TC_JIT_PLUGIN

namespace tc::toolchain {
namespace {

#if defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer);
#else
constexpr bool sanitized = false;
#endif
constexpr unsigned programs_of_a_file = 50, calls_of_a_program = 12;
constexpr uint64_t usual_programs = sanitized ? 50 : 200;

uint64_t setting(const char* name, uint64_t usual) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

struct Answer {
  bool gave_up = false;
  uint64_t value = 0;
  bool operator==(const Answer&) const = default;
};

// The file as the system's compiler understands it.
class Native {
 public:
  explicit Native(const Workshop& shop) {
    const auto source = shop.path() / "random.c", library = shop.path() / "native.so";
    const auto status = run({"cc", "-w", "-DNATIVE", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-o",
                             library.string(), source.string()});
    if (status && *status == 0) handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) entry_ = reinterpret_cast<Entry>(dlsym(handle_, "run_native"));
  }
  ~Native() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;

  bool compiled() const { return entry_ != nullptr; }
  Answer call(std::string payload) const {
    Answer answer;
    answer.gave_up = entry_(payload.data(), payload.size(), &answer.value) != 0;
    return answer;
  }

 private:
  using Entry = int (*)(void*, size_t, void*);
  void* handle_ = nullptr;
  Entry entry_ = nullptr;
};

// The same file at a node of its own.
class Injected {
 public:
  Injected(const Bundle& bundle, bool objects) {
    target::CodeStoreOptions options;
    options.use_objects = objects;
    options.jit_plugin = TC_JIT_PLUGIN;
    store_ = std::move(*target::CodeStore::create(options, policy_, [](target::Code&) {}));
    auto loaded = store_->load(*Bundle::read(bundle.bytes()));
    EXPECT_TRUE(loaded) << loaded.error().message;
    code_ = loaded ? *loaded : nullptr;
  }
  bool loaded() const { return code_ != nullptr; }
  void tune() {
    ASSERT_TRUE(store_->wait_until_tuned(300'000));
    ASSERT_EQ(code_->tier.load(), target::Tier::tuned);
  }
  Answer call(std::string payload) {
    Answer answer;
    Host host;
    target::current_host = &host;
    code_->entry.load()(payload.data(), payload.size(), &answer.value);
    target::current_host = nullptr;
    answer.gave_up = !host.failed.empty();
    return answer;
  }

 private:
  target::Policy policy_;
  std::unique_ptr<target::CodeStore> store_;
  target::Code* code_ = nullptr;
};

// Its first word says which program.
std::string payload_for(unsigned program, std::mt19937_64& random) {
  std::string payload(64 + random() % 100, '\0');
  for (auto& byte : payload) byte = static_cast<char>(random() >> (random() % 2 == 0 ? 56 : 62));
  const uint64_t number = program;
  std::memcpy(payload.data(), &number, sizeof number);
  return payload;
}

class RandomProgramsTest : public testing::TestWithParam<uint64_t> {
 protected:
  // Of the programs of one file, it may be that none does.
  static void TearDownTestSuite() { EXPECT_GT(gave_up_, 0u) << "no program gives up"; }

  // True when all agree.
  bool agree(const Native& native, std::vector<Injected*> nodes, std::mt19937_64& random, const char* when) {
    for (unsigned program = 0; program < programs_of_a_file; ++program)
      for (unsigned i = 0; i < calls_of_a_program; ++i) {
        const auto payload = payload_for(program, random);
        const auto expected = native.call(payload);
        for (size_t node = 0; node < nodes.size(); ++node) {
          const auto answer = nodes[node]->call(payload);
          if (expected.gave_up) ++gave_up_;
          if (answer == expected || (answer.gave_up && expected.gave_up)) continue;
          ADD_FAILURE() << "program " << program << ", call " << i << " " << when << ", node " << node << ": "
                        << answer.gave_up << " " << answer.value << " when it is " << expected.gave_up << " "
                        << expected.value << " natively";
          return false;
        }
      }
    return true;
  }

  static inline unsigned gave_up_ = 0;
};

TEST_P(RandomProgramsTest, do_at_a_node_what_they_do_natively) {
  const auto seed = setting("TC_RANDOM_SEED", 1) + GetParam();
  Workshop shop;
  shop.file("random.c", RandomPrograms(seed).file(programs_of_a_file));
  shop.request.clang_flags = {"-w", "-ffp-contract=off"};
  shop.request.targets = {TargetTriple::host().text};
  const Native native(shop);
  ASSERT_TRUE(native.compiled()) << "seed " << seed;
  const auto built = shop.build();
  ASSERT_TRUE(built) << "seed " << seed << ": " << built.error().message;
  Injected object(built->bundle, true), bitcode(built->bundle, false);
  ASSERT_TRUE(object.loaded() && bitcode.loaded());
  std::mt19937_64 random(seed);
  bool right = agree(native, {&object, &bitcode}, random, "in the first code");
  object.tune();
  bitcode.tune();
  right = right && agree(native, {&object, &bitcode}, random, "in the tuned code");
  if (!right) {
    const auto kept = testing::TempDir() + fmt::format("random-{}.c", seed);
    std::filesystem::copy_file(shop.path() / "random.c", kept, std::filesystem::copy_options::overwrite_existing);
    FAIL() << "seed " << seed << ", kept as " << kept;
  }
}

uint64_t files() {
  return (setting("TC_RANDOM_PROGRAMS", usual_programs) + programs_of_a_file - 1) / programs_of_a_file;
}

INSTANTIATE_TEST_SUITE_P(OfOneFile, RandomProgramsTest, testing::Range<uint64_t>(0, files()));

}  // namespace
}  // namespace tc::toolchain

#endif
