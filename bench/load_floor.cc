// SPDX-License-Identifier: Apache-2.0
//
// What loading an object slice costs, step by step, in a warm process: medians over many different ifuncs, without
// external symbols, with ten of the node's own, and with ten of a library; or of the bundle in FILE, whose ifunc must
// count as bench/tsi's do: `ifunc build --no-bitcode bench/tsi/ten_symbols.c`.
//
//     load_floor [COUNT [FILE]]        not part of `all`: ninja load_floor
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "target/code_store.h"
#include "target/testing/object_builder.h"

namespace {

using namespace tc;
using namespace tc::target;
using namespace tc::target::testing;

struct Samples {
  std::vector<uint64_t> ns;
  void print(const char* what) {
    std::sort(ns.begin(), ns.end());
    const auto at = [this](double part) {
      return static_cast<double>(ns[static_cast<size_t>(part * static_cast<double>(ns.size() - 1))]) / 1000;
    };
    std::printf("%-28s median %8.3f us   10 %% %8.3f us   90 %% %8.3f us\n", what, at(0.5), at(0.1), at(0.9));
  }
};

#if defined(__x86_64__)
constexpr auto glob_dat = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr auto glob_dat = R_AARCH64_GLOB_DAT;
#else
constexpr auto glob_dat = R_RISCV_64;
#endif

// The counting object with `symbols` undefined symbols, each named once in its data.
Bytes object_with(uint64_t number, const std::vector<std::string>& symbols) {
  auto object = counting_object(number);
  object.data.resize(symbols.size() * 8);
  for (const auto& symbol : symbols) {
    const auto place = object.relocations.size();
    object.symbols.push_back({.name = symbol, .where = ObjectBuilder::In::nowhere});
    object.relocations.push_back({.offset = place * 8,
                                  .type = static_cast<uint32_t>(glob_dat),
                                  .symbol = static_cast<uint32_t>(object.symbols.size())});
  }
  return object.build();
}

// `make(i)` gives bundle number i, which no other is like.
Status measure_bundles(const char* title, uint64_t count, const std::vector<std::string>& libraries,
                       const std::function<Result<Bundle>(uint64_t)>& make) {
  Policy policy;
  for (const auto& library : libraries) policy.allow_library(library);
  CodeStoreOptions options;
  options.use_bitcode = false;
  TC_ASSIGN(const auto store, CodeStore::create(options, policy, nullptr));
  Samples check, load, first, again, all;
  for (uint64_t i = 0; i < count; ++i) {
    TC_ASSIGN(const auto sent, make(i));
    const auto bytes = sent.bytes();
    const auto begin = now_ns();
    TC_ASSIGN(auto bundle, Bundle::read_carried(bytes, sent.carried(), sent.id()));
    const auto checked = now_ns();
    TC_ASSIGN(auto* const code, store->load(std::move(bundle)));
    const auto loaded = now_ns();
    uint64_t counter = 0;
    code->entry.load()(nullptr, 0, &counter);
    const auto ran = now_ns();
    code->entry.load()(nullptr, 0, &counter);
    const auto ran_again = now_ns();
    if (counter != 2) return fail(TC_ERR_INTERNAL, "counted {} when 2 is right", counter);
    check.ns.push_back(checked - begin);
    load.ns.push_back(loaded - checked);
    first.ns.push_back(ran - loaded);
    again.ns.push_back(ran_again - ran);
    all.ns.push_back(ran - begin);
    code->last_used = i;
    store->housekeeping();
  }
  std::printf("%s\n", title);
  check.print("  bundle check (2 x SHA-256)");
  load.print("  CodeStore::load");
  first.print("  first execution");
  all.print("  all of it");
  again.print("  second execution and timer");
  return {};
}

Status measure(const char* title, uint64_t count, const std::vector<std::string>& symbols,
               const std::vector<std::string>& libraries) {
  return measure_bundles(title, count, libraries,
                         [&](uint64_t i) { return bundle_with("tsi", object_with(i, symbols), libraries); });
}

Status measure_file(const char* path, uint64_t count) {
  TC_ASSIGN(const auto file, read_file(path, BundleLimits::bundle_bytes));
  TC_ASSIGN(const auto whole, Bundle::read(file));
  return measure_bundles(path, count, whole.manifest().dependencies, [&](uint64_t i) {
    auto manifest = whole.manifest();
    manifest.tool = fmt::format("sample {}", i);
    std::vector<Bytes> stored;
    for (size_t slice = 0; slice < manifest.slices.size(); ++slice)
      stored.emplace_back(whole.stored(slice).begin(), whole.stored(slice).end());
    auto one = Bundle::pack(std::move(manifest), std::move(stored));
    // Only what runs here travels.
    if (!one) return one;
    const auto which = one->useful_for(TargetTriple::host());
    return Bundle::read_carried(one->bytes_for(which), which, one->id());
  });
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 5000;
  if (argc > 2) {
    const auto done = measure_file(argv[2], count);
    if (!done) std::fprintf(stderr, "load_floor: %s\n", done.error().message.c_str());
    return done ? 0 : 1;
  }
  for (const auto& done :
       {measure("no external symbols", count, {}, {}),
        measure("ten of the node", count,
                {"tc_id", "tc_count", "tc_data", "tc_reply", "tc_forward", "tc_forward_as", "tc_inject", "tc_fail",
                 "tc_log", "memcpy"},
                {}),
        measure("ten of a library", count, {"sin", "cos", "tan", "exp", "log", "pow", "sqrt", "floor", "ceil", "hypot"},
                {"libm.so.6"})})
    if (!done) return std::fprintf(stderr, "load_floor: %s\n", done.error().message.c_str()), 1;
  return 0;
}
