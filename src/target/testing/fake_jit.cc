// SPDX-License-Identifier: Apache-2.0
//
// A JIT plug-in without LLVM, for tests of what stands in front of the seam. Its "bitcode" is a line of orders:
//
//     sleep=MS     compiling for this CPU takes so long        bad=1     does not compile
//     needs=NAME   has this undefined symbol                   empty=1   defines no ifunc_main
//
// Baseline code adds 1 to *(uint64_t*)target_args, tuned code 1000. "Linked" code counts itself, see live_code.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "target/jit_plugin.h"

namespace tc::target {
namespace {

std::atomic<int> live_code{0};
std::atomic<int> compiles{0};
std::atomic<bool> linking{false};

std::string order(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return {};
  const auto value = text.substr(at + name.size());
  return std::string(value.substr(0, value.find(' ')));
}

template <int N>
void add(void*, size_t, void* args) {
  *static_cast<uint64_t*>(args) += N;
}

class FakeCode final : public LinkedCode {
 public:
  explicit FakeCode(void* entry) : entry_(entry) { ++live_code; }
  ~FakeCode() override {
    if (linking.load()) std::abort();  // freeing beside linking breaks the interface's rule
    --live_code;
  }
  void* symbol(const std::string& name) const noexcept override {
    return name == "ifunc_main" || name == "payload_init" ? entry_ : nullptr;
  }
  size_t bytes() const noexcept override { return 4096; }

 private:
  void* entry_;
};

class FakeJit final : public Jit {
 public:
  Result<Bytes> compile(ByteView bitcode, Effort effort, const std::string& label) override {
    ++compiles;
    const auto text = as_text(bitcode);
    if (!order(text, "bad=").empty()) return fail(TC_ERR_COMPILE, "'{}' does not compile", label);
    if (const auto ms = order(text, "sleep="); !ms.empty() && effort == Effort::tuned)
      std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(ms)));
    Bytes object(bitcode.begin(), bitcode.end());
    for (const char c : std::string_view(effort == Effort::tuned ? " tuned" : " baseline"))
      object.push_back(static_cast<std::byte>(c));
    return object;
  }

  Result<std::unique_ptr<LinkedCode>> link(ByteView object, const std::string&,
                                           const SymbolResolver& resolve) override {
    if (linking.exchange(true)) std::abort();
    auto result = link_alone(as_text(object), resolve);
    linking = false;
    return result;
  }

  std::string fingerprint(Effort) const override { return "fake"; }
  Status warm_up() override { return {}; }

 private:
  static Result<std::unique_ptr<LinkedCode>> link_alone(std::string_view object, const SymbolResolver& resolve) {
    if (const auto needs = order(object, "needs="); !needs.empty()) TC_CHECK(resolve(needs));
    if (!order(object, "empty=").empty()) return std::make_unique<FakeCode>(nullptr);
    if (object.ends_with(" tuned")) return std::make_unique<FakeCode>(reinterpret_cast<void*>(&add<1000>));
    if (object.ends_with(" baseline")) return std::make_unique<FakeCode>(reinterpret_cast<void*>(&add<1>));
    return fail(TC_ERR_COMPILE, "no object of ours");
  }
};

}  // namespace
}  // namespace tc::target

extern "C" {
__attribute__((visibility("default"))) tc::target::Jit* threechains_make_jit(uint32_t version) {
  return version == tc::target::jit_plugin_version ? new tc::target::FakeJit : nullptr;
}
__attribute__((visibility("default"))) int fake_jit_live_code() { return tc::target::live_code; }
__attribute__((visibility("default"))) int fake_jit_compiles() { return tc::target::compiles; }
}
