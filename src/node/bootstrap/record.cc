// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/record.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "node/bootstrap/bootstrap.h"

namespace tc::node::bootstrap {

namespace {

constexpr std::string_view magic = "threechains-node ";
constexpr std::string_view version = "2 ";
constexpr size_t words = 10;  // behind the version

// Exactly `words` words with one blank between them and a line's end; false otherwise.
bool split(std::string_view line, std::array<std::string_view, words>& out) noexcept {
  if (!line.ends_with('\n')) return false;
  line.remove_suffix(1);
  for (size_t i = 0; i < words; ++i) {
    const auto end = i + 1 < words ? line.find(' ') : line.size();
    if (end == std::string_view::npos || end == 0) return false;
    out[i] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return true;
}

bool number(std::string_view text, uint32_t& out) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::string encode(const Record& record) {
  return fmt::format("{}{}{} {} of {} on {} at {} key {}\n", magic, version, record.informed ? informed_mark : 'w',
                     record.id, record.count, record.host, record.address, record.key.text());
}

Result<Record> decode(std::string_view text) {
  std::array<std::string_view, words> word;
  if (text.size() > max_record_bytes || !text.starts_with(magic))
    return fail(TC_ERR_MALFORMED, "{} bytes that are not a node's record", text.size());
  const auto behind_magic = text.substr(magic.size());
  if (!behind_magic.starts_with(version))
    return fail(TC_ERR_VERSION, "a record of another version of this format; this build writes version {}",
                version.front());
  Record record;
  const bool whole = split(behind_magic.substr(version.size()), word);
  const bool waits = word[0] == "w";
  record.informed = word[0] == std::string_view(&informed_mark, 1);
  if (!whole || (!waits && !record.informed) || !number(word[1], record.id) || word[2] != "of" ||
      !number(word[3], record.count) || word[4] != "on" || word[6] != "at" || word[8] != "key")
    return fail(TC_ERR_MALFORMED, "{} bytes that only begin like a node's record", text.size());
  if (record.count > max_nodes || record.id >= record.count)
    return fail(TC_ERR_MALFORMED, "a record of node {} of {}; there can be {} nodes", record.id, record.count,
                max_nodes);
  record.host = word[5];
  record.address = word[7];
  TC_CHECK(check_address(record.host, "a host"));  // the same characters
  TC_CHECK(check_address(record.address, fmt::format("node {}", record.id)));
  const auto key = trust::PublicKey::parse(word[9]);
  if (!key) return fail(TC_ERR_MALFORMED, "a record of node {} whose key is no public key", record.id);
  record.key = *key;
  return record;
}

std::string host_name() {
  char name[65] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == 0) return "unknown";
  std::string text(name);
  std::ranges::replace_if(text, [](char c) { return c <= ' ' || c >= 127 || c == ','; }, '_');
  return text;
}

}  // namespace tc::node::bootstrap
