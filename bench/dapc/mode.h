// SPDX-License-Identifier: Apache-2.0
//
// The ways to chase that are compared, and what each of them can do for the client.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "common/processes.h"

namespace tc::bench {

// The chaser is C's; the last ones are its translations, and travel as bitcode.
enum class ChaseMode : uint8_t { am, get, ifunc_bitcode, ifunc_object, ifunc_bitcode_julia, ifunc_bitcode_rust };
inline constexpr std::array chase_modes{ChaseMode::am, ChaseMode::get, ChaseMode::ifunc_bitcode,
                                        ChaseMode::ifunc_object};
constexpr std::string_view mode_name(ChaseMode mode) noexcept {
  constexpr std::array<std::string_view, 6> names{
      "am", "get", "ifunc_bitcode", "ifunc_object", "ifunc_bitcode_julia", "ifunc_bitcode_rust"};
  return names[static_cast<size_t>(mode)];
}
constexpr bool is_ifunc(ChaseMode mode) noexcept { return mode >= ChaseMode::ifunc_bitcode; }
constexpr bool is_translation(ChaseMode mode) noexcept { return mode > ChaseMode::ifunc_object; }
constexpr ChaseMode mode_in(std::string_view language) noexcept {
  return language == "rust" ? ChaseMode::ifunc_bitcode_rust : ChaseMode::ifunc_bitcode_julia;
}
// The mode that the servers are set to. Bitcode is one mode for them, whatever language it was written in.
constexpr ChaseMode served_mode(ChaseMode mode) noexcept {
  return is_translation(mode) ? ChaseMode::ifunc_bitcode : mode;
}

// Several chases of one depth.
struct Chases {
  std::span<const uint64_t> starts;
  std::span<uint64_t> ends;  // where each of them led
  uint32_t depth = 0;
  uint32_t inflight = 1;  // chases at a time, at most
};

// The client's side of a mode. Thread: the one that created it.
class ChaseClient {
 public:
  virtual ~ChaseClient() = default;
  // Runs all chases to their ends.
  virtual Status run(const Chases& chases, const Watch& watch) = 0;
};

}  // namespace tc::bench
