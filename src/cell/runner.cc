// SPDX-License-Identifier: Apache-2.0
#include "cell/runner.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <new>

#include "base/clock.h"
#include "cell/packets.h"
#include "target/library_symbols.h"
#include "wire/abi_names.h"

namespace tc::cell {

namespace {

constexpr size_t most_text = 0xffff;  // what a message has room for
constexpr size_t most_kept_payload = size_t{1} << 20;

uint64_t number_of(void* address) noexcept { return reinterpret_cast<uintptr_t>(address); }

}  // namespace

// While a call runs: its code may be gone afterwards, and other code lie there.
class Runner::KnownFrames {
 public:
  KnownFrames(const Unwinder& unwinder, uint64_t frames) noexcept
      : unwinder_(unwinder), frames_(unwinder.add == nullptr ? nullptr : reinterpret_cast<void*>(frames)) {  // NOLINT
    if (frames_ != nullptr) unwinder_.add(frames_);
  }
  ~KnownFrames() {
    if (frames_ != nullptr) unwinder_.remove(frames_);
  }
  KnownFrames(const KnownFrames&) = delete;
  KnownFrames& operator=(const KnownFrames&) = delete;

 private:
  const Unwinder& unwinder_;
  void* const frames_;
};

Runner::Runner(const Start& start, Channel& channel, int socket, uint32_t& begun_call, std::vector<Library> libraries,
               Unwinder unwinder)
    : channel_(channel),
      socket_(socket),
      begun_call_(begun_call),
      libraries_(std::move(libraries)),
      unwinder_(unwinder) {
  be_node(start.node_id, start.node_count);
}

Status Runner::serve(std::string lacks) {
  const target::Executor::Scope scope(executor_);
  Ready ready{.lacks = std::move(lacks)};
  for (const auto name : abi_names::functions) ready.functions.push_back(number_of(target::abi_symbol(name)));
  for (const auto name : abi_names::compiler_runtime)
    ready.runtime.push_back(number_of(target::compiler_runtime_symbol(name)));
  head_.clear();
  append_ready(head_, ready);
  send(ToNode::ready, head_);
  for (;;) {
    const auto message = wait();
    if (static_cast<ToCell>(message.kind) == ToCell::end) return {};
    TC_CHECK(handle(message));
  }
}

// ---- Messages

// The node never breaks the protocol; should the ring say so, its memory was overwritten by the code that runs here.
Channel::Message Runner::wait() {
  for (;;) {
    auto policy = transport::WaitPolicy::until(core_, Deadline::never());
    do {
      if (const auto message = channel_.receive()) return *message;
      if (channel_.broken()) ::_exit(1);
    } while (policy.after_empty_poll(false) == transport::WaitPolicy::Next::poll);
    sleep();
  }
}

void Runner::sleep() {
  channel_.set_sleeping(true);
  Channel::barrier();
  pollfd watched{socket_, POLLIN, 0};
  if (!channel_.has_frames()) (void)::poll(&watched, 1, -1);
  channel_.set_sleeping(false);
  read_packets();
}

// The node reads without being asked to, but may have other things to do first.
void Runner::send(ToNode kind, ByteView head, ByteView tail) {
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 20'000};
  constexpr int polls_before_pauses = 1000;
  channel_.send(static_cast<uint8_t>(kind), running_.number, head, tail);
  for (int polls = 0; !channel_.is_sent(); ++polls) {
    if (channel_.progress())
      polls = 0;
    else if (polls < polls_before_pauses)
      ::sched_yield();
    else
      ::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
  }
}

Status Runner::handle(const Channel::Message& message) {
  switch (static_cast<ToCell>(message.kind)) {
    case ToCell::run: return run(message);
    case ToCell::resolve: resolve(message); return {};
    default: return tc::fail(TC_ERR_MALFORMED, "the node sent a message of kind {}", message.kind);
  }
}

Status Runner::run(const Channel::Message& message) {
  TC_ASSIGN(const auto call, decode_run(message.body));
  running_ = {.number = message.number, .wants_reply = call.wants_reply};
  if (call.forgets_data) forget_data();
  const size_t size = call.payload.size();
  std::byte* const payload = aligned_copy(payload_, call.payload, call.alignment);
  const auto entry = reinterpret_cast<target::EntryPoint>(call.entry);
  void* const target_args = call.has_target_args ? data(target_args_name, nullptr) : nullptr;
  const KnownFrames known(unwinder_, call.frames);
  std::atomic_ref(begun_call_).store(message.number, std::memory_order_release);
  const uint64_t begun = now_ns();
  entry(payload, size, target_args);
  floats_.restore();
  const uint64_t took = now_ns() - begun;
  if (payload_.capacity() > most_kept_payload) Bytes().swap(payload_);
  head_.clear();
  if (running_.lost_reply && !running_.answered) fail(TC_ERR_NO_MEMORY, "there is no memory for its answer");
  append_ended(head_, {.failed = running_.failed, .code = running_.code, .run_ns = took, .message = running_.message});
  send(ToNode::ended, head_);
  running_ = {};
  return {};
}

void Runner::resolve(const Channel::Message& message) {
  const auto asked = decode_resolve(message.body);
  const uint32_t number = std::exchange(running_.number, message.number);
  head_.clear();
  append_resolved(head_, {.address = asked ? number_of(address_of(*asked)) : 0});
  send(ToNode::resolved, head_);
  running_.number = number;
}

void* Runner::address_of(const Resolve& resolve) const {
  if (resolve.library.empty()) {
    void* const function = target::abi_symbol(resolve.symbol);
    return function != nullptr ? function : target::compiler_runtime_symbol(resolve.symbol);
  }
  const auto library = std::ranges::find(libraries_, resolve.library, &Library::name);
  if (library == libraries_.end() || library->handle == nullptr) return nullptr;
  return target::find_symbol({&library->handle, 1}, resolve.symbol);
}

// ---- Packets: bells and data

void Runner::read_packets() {
  for (;;) {
    auto packet = receive_packet(socket_, false);
    if (!packet) ::_exit(1);
    if (!*packet) return;
    const auto& bytes = (*packet)->bytes;
    if (bytes.empty()) ::_exit(0);  // the node is gone
    if (bytes.front() != static_cast<std::byte>(Packet::map)) continue;
    if (const auto data = decode_map(bytes)) map(*data, (*packet)->descriptors[0]);
  }
}

void Runner::map(const Map& map, const Fd& descriptor) {
  const int protection = PROT_READ | (map.writable ? PROT_WRITE : 0);
  void* const address = ::mmap(nullptr, map.size, protection, MAP_SHARED, descriptor.get(), 0);
  const bool is_mapped = address != MAP_FAILED;
  const auto why = is_mapped ? std::string() : system_words(errno);
  if (is_mapped) {
    std::erase_if(data_, [&](const Data& data) { return data.name == map.name; });
    data_.push_back({map.name, address, map.size});
  }
  Bytes head;  // head_ may be in use: this is also called while a call asks
  append_mapped(head, {.status = is_mapped ? TC_OK : TC_ERR_NO_MEMORY, .name = map.name, .message = why});
  send(ToNode::mapped, head);
}

void Runner::forget_data() noexcept {
  for (const auto& one : data_) ::munmap(one.address, one.size);
  data_.clear();
}

const Runner::Data* Runner::find_data(std::string_view name) const noexcept {
  const auto found = std::ranges::find(data_, name, &Data::name);
  return found != data_.end() ? &*found : nullptr;
}

// ---- What a call asks

tc_status_t Runner::ask(const Ask& ask) noexcept try {
  if (ask.name.size() > most_text) return TC_ERR_NOT_FOUND;
  head_.clear();
  append_ask_head(head_, ask);
  send(ToNode::ask, head_, ask.payload);
  for (;;) {
    const auto message = wait();
    if (static_cast<ToCell>(message.kind) != ToCell::answer) {
      if (!handle(message)) ::_exit(1);
      continue;
    }
    const auto answer = decode_answer(message.body);
    if (!answer) ::_exit(1);
    if (answer->first != 0) running_.answered = true;
    return answer->status;
  }
} catch (const std::bad_alloc&) {
  return TC_ERR_NO_MEMORY;
}

void* Runner::data(std::string_view name, size_t* size) noexcept {
  const auto* found = find_data(name);
  if (found == nullptr) {  // it may have come since
    read_packets();
    found = find_data(name);
  }
  if (found == nullptr && ask({.kind = AskKind::data, .name = name}) == TC_OK) {
    read_packets();  // what the answer is about was sent before it
    found = find_data(name);
  }
  if (found == nullptr) return nullptr;
  if (size != nullptr) *size = found->size;
  return found->address;
}

tc_status_t Runner::reply(ByteView bytes) noexcept try {
  if (running_.answered) return TC_ERR_INVALID;
  if (running_.wants_reply) send(ToNode::reply, bytes);
  running_.answered = true;
  return TC_OK;
} catch (const std::bad_alloc&) {
  running_.lost_reply = true;
  return TC_ERR_NO_MEMORY;
}

tc_status_t Runner::forward(uint32_t node, ByteView payload) noexcept {
  return ask({.kind = AskKind::forward, .node = node, .payload = payload});
}

tc_status_t Runner::forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return ask({.kind = AskKind::forward_as, .node = node, .name = name, .payload = payload});
}

tc_status_t Runner::inject(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return ask({.kind = AskKind::inject, .node = node, .name = name, .payload = payload});
}

void Runner::fail(int32_t code, std::string_view message) noexcept try {
  if (std::exchange(running_.failed, true)) return;
  running_.code = code;
  running_.message = message.substr(0, most_text);
} catch (const std::bad_alloc&) {  // then without words
}

void Runner::log(int level, std::string_view message) noexcept try {
  head_.clear();
  append_log(head_, {.level = static_cast<uint8_t>(std::clamp(level, 0, 3)), .text = message});
  send(ToNode::log, head_);
} catch (const std::bad_alloc&) {  // the line is lost
}

}  // namespace tc::cell
