// SPDX-License-Identifier: Apache-2.0
#include "floor/raw_call.h"

namespace tc::bench {

namespace {

void increment(const uint8_t*, uint64_t* counter) { ++*counter; }
void do_nothing(const uint8_t*, uint64_t*) {}

}  // namespace

constinit const RawTable raw_table{do_nothing, increment, do_nothing, do_nothing};

}  // namespace tc::bench
