// SPDX-License-Identifier: Apache-2.0
#include "toolchain/diagnostics.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/process.h"

namespace tc::toolchain {

namespace {

// Of one compilation. A compiler that says more has an error, of which the beginning counts.
constexpr size_t most_output = size_t{16} << 20;

// Clang says where a header was included before it says what is wrong there.
bool is_introduction(std::string_view line) noexcept {
  return line.starts_with("In file included from ") || line.starts_with("In module ");
}

// The count at the end differs where one target has more to say.
bool is_summary(std::string_view line) noexcept {
  return line.ends_with(" generated.") || line.contains(" warning emitted") || line.contains(" warnings emitted");
}

// "x.c:3:5: warning: …" of clang, "warning: …" and "error[E0425]: …" of rustc, in colours or not. Lines of the source are
// shown behind a blank.
bool is_message(std::string_view line) noexcept {
  if (line.empty() || line.front() == ' ') return false;
  return line.contains("warning: ") || line.contains("error: ") || line.contains("error[") || line.contains("remark: ");
}

}  // namespace

std::string Diagnostics::take_new(std::string_view words) {
  std::string fresh, message;
  const auto end_message = [&] {
    if (!message.empty() && said_.insert(message).second) fresh += message;
    message.clear();
  };
  bool is_introduced = false;
  while (!words.empty()) {
    const auto size = std::min(words.find('\n'), words.size() - 1) + 1;
    const auto line = words.substr(0, size), text = line.substr(0, line.find('\n'));
    words.remove_prefix(size);
    const bool introduces = is_introduction(text);
    if (is_summary(text) || (introduces && !is_introduced) || (is_message(text) && !is_introduced)) end_message();
    message += line;
    if (is_summary(text)) end_message();
    is_introduced = introduces || (is_introduced && !is_message(text));
  }
  end_message();
  return fresh;
}

Result<int> Diagnostics::run(const std::vector<std::string>& command) {
  TC_ASSIGN(const auto finished, run_program(command, {.errors = Output::captured, .output_limit = most_output}));
  const auto fresh = take_new(finished.output);
  std::fwrite(fresh.data(), 1, fresh.size(), stderr);
  std::fflush(stderr);
  if (finished.exit.signal != 0) return fail(TC_ERR_IO, "{} {}", command[0], finished.exit.text());
  return finished.exit.code;
}

bool shows_colours() noexcept {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb" &&
         std::getenv("NO_COLOR") == nullptr;
}

}  // namespace tc::toolchain
