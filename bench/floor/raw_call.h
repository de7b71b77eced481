// SPDX-License-Identifier: Apache-2.0
//
// The call that the raw programs send. It is as long as a frame of ours with one byte of payload. The receiver finds
// its handler in a table by the index in the header, as for an Active Message. Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tc::bench {

struct RawCall {
  static constexpr uint64_t index_bits = 2;
  static constexpr uint64_t increment = 1;

  uint64_t header;  // the index, with what the transport needs above it
  uint8_t payload;
  uint8_t padding[7];
};
static_assert(sizeof(RawCall) == 16);

using RawFunction = void (*)(const uint8_t* payload, uint64_t* counter);
using RawTable = std::array<RawFunction, size_t{1} << RawCall::index_bits>;
// Entry RawCall::increment adds one to the counter, the others do nothing.
extern const RawTable raw_table;

}  // namespace tc::bench
