// SPDX-License-Identifier: Apache-2.0
//
// The options of a node: one table, from which come tc_config_set(), the list that tc_option_at() gives to programs,
// `ifunc serve --help`, and docs/options.md.
//
// Thread: any; the table is constant.
#pragma once

#include <span>
#include <string_view>

#include "node/config.h"

namespace tc::node {

struct Option {
  const char* group;   // the heading under which lists show it
  const char* name;    // "ring-bytes"
  const char* value;   // what a value looks like: "BYTES", "on|off", "ADDRESS:PORT"
  const char* preset;  // the value without it, or in words where that comes from; "" is none
  const char* help;    // one or two sentences
  bool repeatable;     // each value adds to those before
  Status (*set)(Config& config, std::string_view value);
};

// Ordered by group.
std::span<const Option> options() noexcept;

}  // namespace tc::node
