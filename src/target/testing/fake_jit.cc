// SPDX-License-Identifier: Apache-2.0
//
// A JIT plug-in without LLVM, for tests of what stands in front of the seam. Its "bitcode" is a line of orders:
//
//     hold=1       compiling for this CPU lasts until          bad=1     does not compile
//                  fake_jit_let_go()                           empty=1   defines no ifunc_main
//     needs=NAME   has this undefined symbol            variable=1  has one of its own
//     stays=1      may not be exchanged where it has variables
//     fatal=1      makes the compiler give up; fatal=judging in may_exchange() alone
//     crash=tuned, crash=baseline  ends the process
//
// Baseline code adds 1 to *(uint64_t*)target_args, tuned code 1000. "Linked" code counts itself, see live_code. It defines
// every symbol lib_..., so that it can be a library.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "target/jit_plugin.h"
#include "wire/abi_names.h"

namespace tc::target {
namespace {

std::atomic<int> live_code{0};
std::atomic<int> compiles{0};
std::atomic<int> given_variables{0};
std::atomic<bool> linking{false};
std::atomic<uint64_t> gave_up{0};
std::atomic<int> held{0}, let_go{0};
constexpr auto longest_hold = std::chrono::seconds(30);  // of a test that waits for what it holds itself

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
  FakeCode(void* entry, bool has_variable) : entry_(entry), has_variable_(has_variable) { ++live_code; }
  ~FakeCode() override {
    if (linking.load()) std::abort();  // freeing beside linking breaks the interface's rule
    --live_code;
  }
  void* symbol(const std::string& name) const noexcept override {
    if (has_variable_ && name == std::string(abi_names::variable_prefix) + "0") return const_cast<int*>(&variable_);
    return name == "ifunc_main" || name == "payload_init" || name.starts_with("lib_") ? entry_ : nullptr;
  }
  size_t bytes() const noexcept override { return 4096; }
  bool holds(uintptr_t) const noexcept override { return false; }
  CodePlace place_of(uintptr_t) const noexcept override { return {}; }
  void* frames() const noexcept override { return nullptr; }

 private:
  void* entry_;
  const bool has_variable_;
  int variable_ = 0;
};

class FakeJit final : public Jit {
 public:
  Result<Bytes> compile(ByteView bitcode, Effort effort, Assembly, const std::string& label) override {
    ++compiles;
    const auto text = as_text(bitcode);
    if (const auto effort_of = order(text, "crash="); !effort_of.empty())
      if ((effort_of == "tuned") == (effort == Effort::tuned)) std::raise(SIGSEGV);
    if (order(text, "fatal=") == "1") {
      ++gave_up;
      return fail(TC_ERR_COMPILE, "'{}' makes the compiler give up", label);
    }
    if (!order(text, "bad=").empty()) return fail(TC_ERR_COMPILE, "'{}' does not compile", label);
    if (!order(text, "hold=").empty() && effort == Effort::tuned) hold();
    Bytes object(bitcode.begin(), bitcode.end());
    for (const char c : std::string_view(effort == Effort::tuned ? " tuned" : " baseline"))
      object.push_back(static_cast<std::byte>(c));
    return object;
  }

  uint64_t given_up(Effort) const noexcept override { return gave_up; }
  Result<bool> may_exchange(ByteView bitcode, const std::string&) override {
    const auto text = as_text(bitcode);
    if (order(text, "fatal=") == "judging") {
      ++gave_up;
      return fail(TC_ERR_COMPILE, "the compiler gives up");
    }
    return order(text, "stays=").empty();
  }

  Result<std::unique_ptr<LinkedCode>> link(ByteView object, const std::string&, const SymbolResolver& resolve,
                                           const Variables& variables, memory::Arena*) override {
    if (linking.exchange(true)) std::abort();
    given_variables = static_cast<int>(variables.size());
    auto result = link_alone(as_text(object), resolve);
    linking = false;
    return result;
  }

  std::string fingerprint(Effort) const override { return "fake"; }
  Status warm_up() override { return {}; }

 private:
  static void hold() {
    const auto end = std::chrono::steady_clock::now() + longest_hold;
    const int before = let_go;
    ++held;
    while (let_go == before && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --held;
  }

  static Result<std::unique_ptr<LinkedCode>> link_alone(std::string_view object, const SymbolResolver& resolve) {
    if (const auto needs = order(object, "needs="); !needs.empty()) TC_CHECK(resolve(needs));
    const bool has_variable = !order(object, "variable=").empty();
    const auto code = [&](void* entry) { return std::make_unique<FakeCode>(entry, has_variable); };
    if (!order(object, "empty=").empty()) return code(nullptr);
    if (object.ends_with(" tuned")) return code(reinterpret_cast<void*>(&add<1000>));
    if (object.ends_with(" baseline")) return code(reinterpret_cast<void*>(&add<1>));
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
// To what was linked last.
__attribute__((visibility("default"))) int fake_jit_given_variables() { return tc::target::given_variables; }
// Compilations that are held now.
__attribute__((visibility("default"))) int fake_jit_held() { return tc::target::held; }
__attribute__((visibility("default"))) int fake_jit_let_go() { return ++tc::target::let_go; }
}
