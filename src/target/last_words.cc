// SPDX-License-Identifier: Apache-2.0
#include "target/last_words.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <iterator>

#include "wire/abi_names.h"

namespace tc::target {

constinit thread_local const BeingBuilt* BeingBuilt::current_ = nullptr;

namespace {

// The farthest that an access misses the end of a stack by, when a function's variables do not fit there any more.
constexpr uintptr_t stack_reach = uintptr_t{64} * 1024;

// A fault inside of tell(), while it looks at memory that the ifunc may have spoilt: then it says less.
enum class Step : uint8_t { nothing, looks, speaks };
constinit thread_local Step step = Step::nothing;

// The innermost return address on the stack that leads into the code; 0: none does. Words that were left there by earlier calls
// may mislead, but the stack of a call that ended lies below.
[[gnu::no_sanitize("address", "thread")]] uintptr_t caller_in(const Code& code, uintptr_t stack,
                                                              uintptr_t base) noexcept {
  for (stack &= ~(sizeof(uintptr_t) - 1); stack < base; stack += sizeof(uintptr_t))
    if (const uintptr_t word = *reinterpret_cast<const volatile uintptr_t*>(stack); code.holds(word)) return word;
  return 0;
}

// The two that a user who has no keys lacks.
void make_folders(std::string_view file) noexcept {
  char path[512];
  const auto last = file.rfind('/');
  if (last == std::string_view::npos || last >= sizeof path) return;
  for (const auto end : {file.rfind('/', last - 1), last}) {
    if (end == std::string_view::npos) continue;
    path[file.copy(path, end)] = '\0';
    (void)::mkdir(path, 0700);
  }
}

std::string_view what_happened(int signal) noexcept {
  switch (signal) {
    case SIGFPE: return "it divided by zero";
    case SIGILL:
    case SIGTRAP: return "it came to an instruction that stops it";
    case SIGABRT: return "it was aborted";
    case SIGSYS: return "it made a system call that is forbidden";
    default: return "it used an address that cannot be";
  }
}

}  // namespace

// Text of limited length, without memory of its own.
class LastWords::Sentence {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) noexcept {
    const auto room = static_cast<size_t>(std::end(text_) - end_);
    end_ += std::min(room, fmt::format_to_n(end_, room, format, std::forward<Args>(args)...).size);
  }
  void add_id(const ContentId& id) noexcept {
    add("; content id ");
    for (size_t i = 0; i < 6; ++i) add("{:02x}", std::to_integer<unsigned>(id.bytes[i]));
  }
  std::string_view text() const noexcept { return {text_, static_cast<size_t>(end_ - text_)}; }

 private:
  char text_[1024];
  char* end_ = text_;
};

LastWords::LastWords(std::string log, LogFormat format, std::string node, std::string file)
    : log_(std::move(log)),
      node_(std::move(node)),
      file_(std::move(file)),
      format_(format),
      seconds_east_(seconds_east_of_greenwich(::time(nullptr))) {
  have_alternate_stack();
}

void LastWords::tell(const Fault& fault) noexcept {
  if (const auto* const built = BeingBuilt::on_this_thread(); built != nullptr) {
    const auto* const words = built->node != nullptr ? built->node->last_words() : nullptr;
    if (words != nullptr && fault.is_last && step != Step::speaks) words->say(fault, *built);
    return;
  }
  const auto* const host = current_host;
  const auto* const words = host != nullptr ? host->last_words() : nullptr;
  if (words == nullptr || step == Step::speaks) return;
  const auto call = host->in_progress();
  const auto moment = call.executor != nullptr ? call.executor->moment() : Executor::Moment{};
  if (!moment.runs || moment.code == nullptr) return;
  const bool looks_again = step == Step::looks;
  step = Step::looks;
  const bool is_in_code = moment.code->holds(fault.pc);
  if (!is_in_code && !fault.is_last) {
    step = Step::nothing;
    return;
  }
  const bool is_called_by_code =
      looks_again || is_in_code || caller_in(*moment.code, fault.stack, call.executor->stack_base()) != 0;
  if (is_called_by_code) words->say(fault, *moment.code, call);
  step = Step::nothing;
}

void LastWords::say(const Fault& fault, const Code& code, const IfuncHost::InProgress& call) const noexcept {
  Sentence sentence;
  sentence.add("{} ended while it ran ifunc '{}' ({}): ", node_, code.name(), signal_name(fault.signal));
  const auto address = reinterpret_cast<uintptr_t>(fault.address);
  const bool is_stack_full = fault.has_address && address + stack_reach > fault.stack &&
                             address < fault.stack + stack_reach && !code.holds(address);
  if (is_stack_full)
    sentence.add("its stack is used up, at address {:#x}", address);
  else if (fault.has_address)
    sentence.add("it used address {:#x}", address);
  else
    sentence.add("{}", what_happened(fault.signal));
  const bool is_in_code = code.holds(fault.pc);
  const auto place = code.place_of(is_in_code ? fault.pc : caller_in(code, fault.stack, call.executor->stack_base()));
  sentence.add("{}{}", is_in_code ? " in " : " in a function that is called in ", "");
  if (place.symbol == abi_names::main)
    sentence.add("{}{}", code.name(), abi_names::main_suffix);
  else
    sentence.add("{}", place.symbol.empty() ? "its code" : place.symbol);
  sentence.add("+{:#x}", place.offset);
  sentence.add_id(code.id());
  sentence.add(", called by {}", call.caller);
  step = Step::speaks;
  write_line(sentence.text(), {.ifunc = code.name(), .content_id = &code.id(), .peer = call.caller});
  write_file(sentence.text());
}

void LastWords::say(const Fault& fault, const BeingBuilt& built) const noexcept {
  step = Step::speaks;
  Sentence sentence;
  sentence.add("{} ended while it compiled ifunc '{}' ({}): ", node_, built.name, signal_name(fault.signal));
  if (fault.has_address)
    sentence.add("it used address {:#x}", reinterpret_cast<uintptr_t>(fault.address));
  else
    sentence.add("{}", what_happened(fault.signal));
  sentence.add_id(built.id);
  if (!built.sender.empty()) sentence.add(", sent by {}", built.sender);
  write_line(sentence.text(), {.ifunc = built.name, .content_id = &built.id, .peer = built.sender});
  write_file(sentence.text());
}

// As the log has its lines. The log itself may be locked.
void LastWords::write_line(std::string_view sentence, const LogFields& fields) const noexcept {
  if (log_.empty()) return;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  char line[longest_log_line];
  const size_t size =
      write_log_line(line, format_, {now, seconds_east_, spdlog::level::critical, log_, sentence, fields});
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, size);
}

void LastWords::write_file(std::string_view sentence) const noexcept {
  if (file_.empty()) return;
  make_folders(file_);
  const int file = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  [[maybe_unused]] const auto written = ::write(file, sentence.data(), sentence.size());
  ::close(file);
}

}  // namespace tc::target
