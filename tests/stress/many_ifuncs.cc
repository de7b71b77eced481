// SPDX-License-Identifier: Apache-2.0
//
// many_ifuncs ADDRESS COUNT: sends COUNT ifuncs that differ from each other to one node, and waits for each answer.
// Driven by tests/integration/test_budget.py, which watches the node's memory meanwhile.
#include <threechains/threechains.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "tsi/ifunc_peer.h"

namespace {

int run(const char* address, int count) {
  using namespace threechains;
  Node node;
  Endpoint endpoint = node.connect(address);
  for (int i = 0; i < count; ++i) {
    const auto bundle = tc::bench::tsi_variant(tc::SliceForm::object, "variant " + std::to_string(i));
    if (!bundle) return std::fprintf(stderr, "%s\n", bundle.error().message.c_str()), 1;
    const auto bytes = bundle->bytes();
    const Ifunc ifunc = node.load(bytes);
    endpoint.call(ifunc.message("x")).get();
  }
  std::printf("%d ifuncs ran\n", count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: many_ifuncs ADDRESS COUNT\n"), 2;
  try {
    return run(argv[1], std::atoi(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "many_ifuncs: %s\n", error.what());
    return 1;
  }
}
