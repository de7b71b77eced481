// SPDX-License-Identifier: Apache-2.0
#include "ifunc/first_contact.h"

#include <fcntl.h>
#include <threechains/status.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "base/fd.h"
#include "trust/key_file.h"
#include "trust/known_nodes.h"

namespace tc::command {

namespace {

// The key that a node has answered with, by the words of Authority::may_meet(); nothing when it was refused for another
// reason.
std::optional<trust::PublicKey> key_in_question(const std::string& refusal) {
  constexpr std::string_view before = "it answers with key ",
                             behind = ", which is not known here, and first-contact is ask: compare";
  const auto end = refusal.find(behind), begin = refusal.rfind(before, end);
  if (end == std::string::npos || begin == std::string::npos) return {};
  const auto from = begin + before.size();
  const auto key = trust::PublicKey::parse(std::string_view(refusal).substr(from, end - from));
  return key ? std::optional(*key) : std::nullopt;
}

// Not standard input, which may be the payload.
bool is_confirmed(const Fd& terminal, const std::string& question) {
  for (std::string_view rest = question; !rest.empty();) {
    const auto written = ::write(terminal.get(), rest.data(), rest.size());
    if (written <= 0) return false;
    rest.remove_prefix(static_cast<size_t>(written));
  }
  std::array<char, 100> answer;
  const auto got = ::read(terminal.get(), answer.data(), answer.size());
  return got > 0 && std::string_view(answer.data(), static_cast<size_t>(got)).starts_with("yes\n");
}

}  // namespace

Status ask_about(const Error& refusal, const std::string& address) {
  const auto key = refusal.code == TC_ERR_DENIED ? key_in_question(refusal.message) : std::nullopt;
  if (!key) return fail(refusal);
  const Fd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!terminal) return fail(refusal);
  const auto question = fmt::format(
      "{} is not known here. It answers with key\n  {}\nCompare it with `ifunc key show` there. Is it the right one? "
      "It "
      "is remembered then (yes/no): ",
      address, key->text());
  if (!is_confirmed(terminal, question)) return fail(refusal);
  TC_ASSIGN(const auto home, trust::home());
  return trust::KnownNodes(home / "known-nodes").remember(address, *key);
}

}  // namespace tc::command
