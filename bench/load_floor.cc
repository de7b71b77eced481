// SPDX-License-Identifier: Apache-2.0
//
// What loading an object slice costs, step by step, in a warm process: medians over many different ifuncs.
//
//     load_floor [COUNT]        not part of `all`: ninja load_floor
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
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

}  // namespace

int main(int argc, char** argv) {
  const uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 5000;
  Policy policy;
  CodeStoreOptions options;
  options.use_bitcode = false;
  auto store = std::move(*CodeStore::create(options, policy, nullptr));
  Samples check, load, first, again;
  for (uint64_t i = 0; i < count; ++i) {
    const auto sent = bundle_with("tsi", counting_object(i).build());
    const auto bytes = sent.bytes();
    const auto begin = now_ns();
    auto bundle = Bundle::read_carried(bytes, sent.carried(), sent.id());
    const auto checked = now_ns();
    auto code = store->load(std::move(*bundle));
    const auto loaded = now_ns();
    if (!code) return std::fprintf(stderr, "%s\n", code.error().message.c_str()), 1;
    uint64_t counter = 0;
    (*code)->entry.load()(nullptr, 0, &counter);
    const auto ran = now_ns();
    (*code)->entry.load()(nullptr, 0, &counter);
    const auto ran_again = now_ns();
    if (counter != 2)
      return std::fprintf(stderr, "counted %llu when 2 is right\n", static_cast<unsigned long long>(counter)), 1;
    check.ns.push_back(checked - begin);
    load.ns.push_back(loaded - checked);
    first.ns.push_back(ran - loaded);
    again.ns.push_back(ran_again - ran);
    (*code)->last_used = i;
    store->tend();
  }
  check.print("bundle check (2 x SHA-256)");
  load.print("CodeStore::load");
  first.print("first execution");
  again.print("second execution and timer");
  return 0;
}
