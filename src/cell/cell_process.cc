// SPDX-License-Identifier: Apache-2.0
#include "cell/cell_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/plugin.h"
#include "cell/packets.h"
#include "wire/abi_names.h"
#include "wire/text.h"

namespace tc::cell {

using transport::RingMemory;

// ---- Start and end

namespace {

// Where the libraries are found that code may use.
std::vector<std::string> library_path() {
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  if (path == nullptr) return {};
  return {std::string("LD_LIBRARY_PATH=") + path};
}

}  // namespace

Result<std::filesystem::path> CellProcess::find_program(const std::string& wish) {
  const auto path = wish.empty() ? own_program("threechains-cell") : std::filesystem::path(wish);
  if (::access(path.c_str(), X_OK) == 0) return path;
  return fail(TC_ERR_NOT_FOUND, "there is no program {} to isolate calls in", path.string());
}

Result<std::unique_ptr<CellProcess>> CellProcess::start(const Options& options) {
  constexpr size_t most_output = 4096;  // of a cell that cannot start
  if (!Channel::can_sleep()) return fail(TC_ERR_UNSUPPORTED, "this kernel has no membarrier, which cells need");
  TC_ASSIGN(auto sockets, socket_pair());
  TC_ASSIGN(auto rings, RingMemory::create(options.ring_bytes));
  TC_ASSIGN(auto crash, CrashMemory::create());
  const Start start{.parent = static_cast<uint32_t>(::getpid()),
                    .node_id = options.node_id,
                    .node_count = options.node_count,
                    .ring_bytes = static_cast<uint32_t>(options.ring_bytes),
                    .message_bytes = options.message_bytes,
                    .memory_bytes = options.memory_bytes,
                    .code_address = reinterpret_cast<uintptr_t>(options.code.address),
                    .code_bytes = options.code.bytes,
                    .data_address = reinterpret_cast<uintptr_t>(options.data.address),
                    .data_bytes = options.data.bytes,
                    .libraries = options.libraries};
  const int descriptors[] = {rings.descriptor().get(), crash.descriptor().get(), options.code.descriptor,
                             options.data.descriptor};
  TC_CHECK(send_packet(sockets[0].get(), encode_start(start), descriptors));
  // Our environment may hold secrets. Ctrl-C in a terminal is for the node: it may let the calls end first.
  TC_ASSIGN(auto child, ChildProcess::spawn({options.program.string()}, {.environment = library_path(),
                                                                         .inherit_environment = false,
                                                                         .input = sockets[1].get(),
                                                                         .output = Output::discarded,
                                                                         .errors = Output::captured,
                                                                         .output_limit = most_output,
                                                                         .own_group = true}));
  crash.close_descriptor();
  return std::unique_ptr<CellProcess>(
      new CellProcess(options, std::move(child), std::move(sockets[0]), std::move(rings), std::move(crash)));
}

CellProcess::CellProcess(const Options& options, ChildProcess child, Fd socket, RingMemory rings, CrashMemory crash)
    : child_(std::move(child)),
      socket_(std::move(socket)),
      channel_(std::move(rings), RingMemory::Side::creator, socket_.get(), options.message_bytes),
      crash_(std::move(crash)),
      start_deadline_(Deadline::after_ms(options.start_ms)) {}

CellProcess::~CellProcess() = default;

void CellProcess::end() {
  if (std::exchange(is_told_to_end_, true)) return;
  channel_.send(static_cast<uint8_t>(ToCell::end), 0, {});
}

void CellProcess::kill(std::string why) {
  if (exit_ || killed_because_) return;
  killed_because_ = std::move(why);
  child_.kill();
}

void CellProcess::break_protocol(Error error) {
  if (broken_because_) return;
  broken_because_ = std::move(error.message);
  child_.kill();
}

// ---- What the cell is told

namespace {

// A cell could make its mapping writable, were it not for a descriptor that only reads.
Result<Fd> for_reading(int descriptor) {
  const auto path = fmt::format("/proc/self/fd/{}", descriptor);
  Fd reads(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reads) return fail(TC_ERR_IO, "opening data for reading alone: {}", system_words(errno));
  return reads;
}

// Data that is mapped does not count against what the cell may use itself.
void change_memory_limit(pid_t pid, uint64_t more, uint64_t less) noexcept {
  rlimit limit{};
  if (::prlimit(pid, RLIMIT_AS, nullptr, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  limit.rlim_cur = std::min(limit.rlim_cur + more - less, limit.rlim_max);
  (void)::prlimit(pid, RLIMIT_AS, &limit, nullptr);
}

}  // namespace

Status CellProcess::run(const Run& call) {
  if (!is_idle()) return fail(TC_ERR_BUSY, "the cell is not idle");
  const auto number = conversation_.begin(call.wants_reply);
  if (call.forgets_data) change_memory_limit(pid(), 0, std::exchange(data_bytes_, 0));
  head_.clear();
  append_run_head(head_, call);
  channel_.send(static_cast<uint8_t>(ToCell::run), number, head_, call.payload);
  return {};
}

Status CellProcess::answer(const Answer& answer) {
  if (!conversation_.answer(answer.first != 0)) return fail(TC_ERR_INVALID, "the cell has asked nothing");
  head_.clear();
  append_answer_head(head_, answer);
  channel_.send(static_cast<uint8_t>(ToCell::answer), conversation_.call_number(), head_, answer.bytes);
  return {};
}

Status CellProcess::map_data(const std::string& name, int descriptor, uint64_t size, bool writable) {
  if (!is_idle() && !is_running()) return fail(TC_ERR_BUSY, "the cell is not ready for data");
  Fd reads;
  if (!writable) {
    TC_ASSIGN(reads, for_reading(descriptor));
  }
  change_memory_limit(pid(), size, 0);
  data_bytes_ += size;
  const int passed[] = {writable ? descriptor : reads.get()};
  TC_CHECK(send_packet(socket_.get(), encode_map({.size = size, .writable = writable, .name = name}), passed));
  conversation_.await_mapped();
  return {};
}

Status CellProcess::resolve(const std::string& library, const std::string& symbol) {
  if (!is_idle() && !is_running()) return fail(TC_ERR_BUSY, "the cell is not ready for symbols");
  head_.clear();
  append_resolve(head_, {.library = library, .symbol = symbol});
  channel_.send(static_cast<uint8_t>(ToCell::resolve), conversation_.call_number(), head_);
  conversation_.await_resolved();
  return {};
}

// ---- What comes from it

std::optional<Event> CellProcess::next() {
  if (conversation_.is_over() || broken_because_) return {};
  if (const auto message = channel_.receive()) {
    auto event = conversation_.read(*message);
    if (event) {
      if (const auto* const ready = std::get_if<Ready>(&*event)) ready_ = *ready;
      return std::move(*event);
    }
    break_protocol(std::move(event).error());
  } else if (channel_.broken()) {
    break_protocol(*channel_.broken());
  } else if (exit_) {
    is_drained_ = true;
  }
  return {};
}

void* CellProcess::symbol(std::string_view name) const noexcept {
  const auto look_up = [name](const auto& names, const std::vector<uint64_t>& addresses) -> void* {
    const auto* const found = std::ranges::find(names, name);
    const auto index = static_cast<size_t>(found - std::begin(names));
    return index < addresses.size() ? reinterpret_cast<void*>(addresses[index]) : nullptr;
  };
  if (void* const function = look_up(abi_names::functions, ready_.functions)) return function;
  return look_up(abi_names::compiler_runtime, ready_.runtime);
}

// ---- The end

void CellProcess::check() {
  if (conversation_.is_over()) return;
  if (!is_gone_) read_bells();
  if (conversation_.is_starting() && !is_gone_ && start_deadline_.passed()) kill("it did not become ready in time");
  if (is_gone_) find_ending();
}

// One bell for each sleep is the most that there can be: a cell that sends more would keep this node awake. Descriptors that come
// along are not taken.
void CellProcess::read_bells() {
  for (;;) {
    char bell[64];
    const auto got = ::recv(socket_.get(), bell, sizeof bell, MSG_DONTWAIT);
    if (got <= 0) {
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) on_end_of_socket();
      return;
    }
    if (++bells_ <= sleeps_) continue;
    break_protocol({TC_ERR_MALFORMED, fmt::format("it sent {} bells when this node slept {} times", bells_, sleeps_)});
    is_gone_ = true;
    return;
  }
}

// A cell that lives on without its socket would not be heard any more, and keep this node awake; one that ends anyway
// ends as it would have. An empty packet looks like the end.
void CellProcess::on_end_of_socket() {
  is_gone_ = true;
  pollfd socket{socket_.get(), 0, 0};
  if (::poll(&socket, 1, 0) > 0 && (socket.revents & POLLHUP) != 0) return child_.kill();
  break_protocol({TC_ERR_MALFORMED, "it sent an empty packet"});
}

// A process closes its socket a little before it can be reaped; the socket stays readable meanwhile. Then all that it sent is
// taken before its end is told.
void CellProcess::find_ending() {
  if (!exit_) exit_ = child_.poll();
  if (!exit_ || (!broken_because_ && !is_drained_)) return;
  const bool was_ready = !conversation_.is_starting();
  conversation_.end();
  Ending ending{.signal = exit_->signal, .exit_code = exit_->code};
  auto crash = crash_.read();
  if (crash && crash->signal == exit_->signal) ending.crash = std::move(crash);
  if (broken_because_) {
    ending.kind = Ending::Kind::broke_protocol;
    ending.why = *broken_because_;
  } else if (!was_ready) {
    ending.kind = Ending::Kind::not_started;
    ending.why = killed_because_ ? *killed_because_ : wire::words(child_.take_output());
    if (ending.why.empty()) ending.why = exit_->text();
  } else if (killed_because_ && exit_->signal == SIGKILL) {
    ending.kind = Ending::Kind::killed;
    ending.why = *killed_because_;
  } else if (exit_->signal != 0) {
    ending.kind = Ending::Kind::crashed;
  } else {
    ending.kind = is_told_to_end_ ? Ending::Kind::left : Ending::Kind::exited;
  }
  ending_ = std::move(ending);
}

}  // namespace tc::cell
