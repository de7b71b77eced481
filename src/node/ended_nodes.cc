// SPDX-License-Identifier: Apache-2.0
#include "node/ended_nodes.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "transport/address.h"
#include "trust/key_file.h"
#include "wire/frame.h"
#include "wire/text.h"

namespace tc::node {

namespace {

// Ports are used again by others.
constexpr auto longest_kept = std::chrono::hours(24);

}  // namespace

std::string last_words_file(std::string_view address) {
  const auto home = trust::home();
  if (!home || address.empty()) return {};
  std::string name(address);
  std::ranges::replace(name, '/', '%');
  return (*home / "last-words" / name).string();
}

std::string last_words_of(std::string_view address) {
  const std::filesystem::path file = last_words_file(address);
  std::error_code error;
  const auto written = file.empty() ? std::filesystem::file_time_type::min() : last_write_time(file, error);
  if (file.empty() || error || std::filesystem::file_time_type::clock::now() - written > longest_kept) return {};
  const auto bytes = read_file(file, wire::most_last_words);
  return bytes && wire::printable(as_text(*bytes)) ? std::string(as_text(*bytes)) : std::string();
}

std::string take_last_words(std::string_view address, std::string_view listen) {
  const auto asked = transport::parse_host_and_port(listen);
  const bool is_by_chance = asked && asked->port == 0;
  auto words = is_by_chance ? std::string() : last_words_of(address);
  std::error_code ignored;
  if (const auto file = last_words_file(address); !file.empty()) std::filesystem::remove(file, ignored);
  return words;
}

}  // namespace tc::node
