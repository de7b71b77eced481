// SPDX-License-Identifier: Apache-2.0
#include "target/receiver.h"

#include <algorithm>

#include "base/speed.h"

namespace tc::target {

Status NumberTable::bind(uint32_t number, Code& code) {
  if (number >= limit) return fail(TC_ERR_LIMIT, "code number {} is used when numbers end at {}", number, limit - 1);
  if (number < few) {
    first_[number] = &code;
    return {};
  }
  if (number >= codes_.size()) codes_.resize(std::max<size_t>(number + 1, codes_.size() * 2));
  codes_[number] = &code;
  return {};
}

void NumberTable::forget(const Code& code) noexcept {
  std::ranges::replace(first_, &code, nullptr);
  std::ranges::replace(codes_, &code, nullptr);
}

namespace {

// The low byte of the header word of a call without flags.
constexpr uint64_t plain_call = static_cast<uint64_t>(wire::Kind::call);

bool runs_in_place(const Code* code, const Executor& executor) noexcept {
  return code != nullptr && executor.allows(code->lane);
}

// So much is read before its memory goes back: a small part of the smallest buffer that frames come by.
constexpr ptrdiff_t bytes_a_release = 16 * 1024;

// What receive() keeps in registers.
struct Run {
  transport::InStream& in;
  Executor& executor;
  FrameHandler& handler;
  const size_t most;
  const std::byte* at;
  const std::byte* released;  // up to where the memory was given back
  size_t taken = 0;
  bool gone = false;  // the stream was closed by what a frame led to

  bool fits(size_t stride) const noexcept { return stride <= static_cast<size_t>(in.end() - at); }
  bool still_here() noexcept { return !(gone = in.at() != at); }
  void release() noexcept {
    in.seek(at);
    in.release();
    at = released = in.at();
  }
};

// Runs a plain call and all that follow with the same header word: a burst of one ifunc, most of the time. Where it is
// stands in a local variable: in memory, each frame would wait for the store of the one before. May throw std::bad_alloc: a
// failure is told by on_effects().
void run_alike(Run& run, Code& code, uint64_t word, size_t length) {
  auto& in = run.in;
  auto& executor = run.executor;
  const size_t stride = wire::stride(length);
  const std::byte* at = run.at;
  const std::byte* const last = std::min(in.end() - stride, run.released + bytes_a_release);
  const size_t most = std::min<size_t>(run.most - run.taken, executor.slice().before(code));
  size_t left = most;
  executor.prepare(code);
  do {
    in.seek(at);
    if (!executor.run_prepared(code, const_cast<std::byte*>(at) + wire::header_bytes, length)) [[unlikely]] {
      run.handler.on_effects();
      executor.prepare(code);
    }
    --left;
    if (in.at() != at) [[unlikely]] {
      run.gone = true;
      break;
    }
    at += stride;
  } while (speed::alike && left != 0 && at <= last && transport::load_header(at) == word);
  run.at = at;
  const size_t ran = most - left;
  run.taken += ran;
  in.count_calls(ran);
  executor.slice().after(code, static_cast<uint32_t>(ran));
}

// No whole frame at hand: a pad, or the end of what has come. False: stop.
bool take_more(Run& run, size_t& pads) {
  run.in.seek(run.at);
  const bool more = run.in.refill() && ++pads <= run.most;
  if (!more && run.in.broken()) run.handler.on_broken("its frames lead outside the memory that they lie in");
  run.at = run.released = run.in.at();
  return more;
}

// Any frame but a plain call of held code. False: stop.
bool take_other(Run& run, uint64_t word) {
  const auto header = wire::decode(word);
  run.in.seek(run.at);
  const bool fine = run.handler.on_frame(header, run.in.body());
  if (!run.still_here() || !fine) return run.gone = true, false;
  run.at += wire::stride(header.length);
  ++run.taken;
  return true;
}

}  // namespace

size_t receive(transport::InStream& in, const NumberTable& first_numbers, Executor& executor, FrameHandler& handler,
               size_t most, size_t longest_call) {
  const NumberTable* numbers = &first_numbers;
  Run run{in, executor, handler, most, in.at(), in.at()};
  size_t pads = 0;  // bounded like frames: one that leads to itself must not keep us for ever
  while (run.taken < most && !run.gone) {
    const uint64_t word = transport::load_header(run.at);
    const auto header = wire::decode(word);
    if (word == 0) break;
    if (header.kind == wire::Kind::pad || !run.fits(wire::stride(header.length))) {
      if (!take_more(run, pads)) break;
      continue;
    }
    const bool is_plain = (word & 0xff) == plain_call && header.length <= longest_call;
    Code* const code = is_plain ? numbers->find(header.number) : nullptr;
    if (runs_in_place(code, executor)) [[likely]]
      run_alike(run, *code, word, header.length);
    else if (take_other(run, word))
      numbers = &handler.numbers();
    else
      break;
    if (executor.slice().is_over()) [[unlikely]]
      break;
    if (!run.gone && run.at - run.released >= bytes_a_release) run.release();
  }
  if (!run.gone) run.release();
  return run.taken;
}

}  // namespace tc::target
