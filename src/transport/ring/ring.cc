// SPDX-License-Identifier: Apache-2.0
#include "transport/ring/ring.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tc::transport {

void RingIn::start(const RingView& ring) noexcept {
  std::memset(ring.control, 0, ring_data_offset);
  ring.control->consumed = ring_start;
  store_header(ring.data + ring_start, 0);
}

void RingIn::open(const RingView& ring, size_t usual) noexcept {
  assert(ring_size_is_valid(ring.bytes) && ring_size_is_valid(usual) && usual <= ring.bytes && !is_open());
  ring_ = ring;
  step_ = usual / 8;
  lap_ = 0;
  published_ = ring_start;
  cursor_ = ring.data + ring_start;
  end_ = ring.last_place();
}

void RingIn::shut() noexcept {
  if (!is_open()) return;
  lap_ = consumed();
  ring_ = {};
  abandon();
}

bool RingIn::refill() noexcept {
  if (!is_open()) return false;
  const uint64_t word = peek();
  if (word == 0) return false;
  const wire::FrameHeader header = wire::decode(word);
  const bool is_pad = header.kind == wire::Kind::pad;
  if (!is_pad && fits(header.length)) return true;
  if (!is_pad || wire::stride(header.length) != ring_.to_next_lap(position())) {
    broken_ = true;  // a visible frame is whole, and a pad leads to the next lap
    return false;
  }
  lap_ += ring_.bytes;
  cursor_ = ring_.data + ring_start;
  return true;
}

// Each store to `consumed` costs the sender a cache miss when it reads it, which it does only when the ring seems full.
// So the position is published seldom while frames keep coming, and at once when they stop.
void RingIn::release() noexcept {
  if (!is_open()) return;
  const uint64_t now = position();
  if (now == published_ || (now - published_ < step_ && peek() != 0)) return;
  published_ = now;
  std::atomic_ref(ring_.control->consumed).store(now, std::memory_order_release);
}

void RingIn::set_sleeping(bool sleeping) noexcept {
  if (is_open()) std::atomic_ref(ring_.control->sleeping).store(sleeping ? 1 : 0, std::memory_order_relaxed);
}

namespace {

constexpr uint32_t no_sleeper = 0;  // what slow_commit_flag_ points to without a ring
// The size of a batch: so long that the reader seldom catches up with a cache line that is being written, and short
// beside the smallest ring.
constexpr ptrdiff_t batch_bytes = 1024;

}  // namespace

RingOut::RingOut(FlushList& list, std::function<void()> ring_doorbell) noexcept
    : list_(list), ring_doorbell_(std::move(ring_doorbell)) {
  slow_commit_flag_ = &no_sleeper;
}

void RingOut::open(const RingView& ring, size_t usual) noexcept {
  assert(ring_size_is_valid(ring.bytes) && ring_size_is_valid(usual) && usual <= ring.bytes && !is_open());
  ring_ = ring;
  usual_end_ = round_end_ = ring.data + usual - wire::header_bytes;
  lap_ = 0;
  consumed_ = ring_start;
  cursor_ = ring.data + ring_start;
  set_end();
  max_length_ = ring_max_length(usual);
  piece_length_ = ring_piece_length(usual);
  slow_commit_flag_ = &ring.control->sleeping;
  poll_number_ = &list_.poll_state().poll_number;
  poll_lag_ = 0;
  last_poll_ = *poll_number_ - 1;
}

void RingOut::shut() noexcept {
  if (!is_open()) return;
  flush();
  list_.remove(*this);
  lap_ = written();
  ring_ = {};
  cursor_ = end_ = nullptr;
  max_length_ = 0;
  slow_commit_flag_ = &no_sleeper;
  poll_number_ = &no_poll;
  poll_lag_ = last_poll_ = 1;
}

void RingOut::flush() noexcept {
  publish();
  end_batch();
}

void RingOut::publish() noexcept {
  if (batch_end_ == nullptr || batch_at_ == cursor_) return;
  store_header(cursor_, 0);  // the end of the batch, before its beginning can be seen
  store_header(batch_at_, batch_header_);
  batch_at_ = cursor_;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // as in finish()
  if (__atomic_load_n(slow_commit_flag_, __ATOMIC_RELAXED) != 0) [[unlikely]]
    wake_reader();
}

void RingOut::start_batch() noexcept {
  batch_at_ = cursor_;
  batch_end_ = cursor_ + batch_bytes;
}

void RingOut::wake_reader() noexcept {
  if (std::atomic_ref(ring_.control->sleeping).exchange(0, std::memory_order_acq_rel) != 0) ring_doorbell_();
}

void RingOut::update_consumed() noexcept {
  const uint64_t now = std::atomic_ref(ring_.control->consumed).load(std::memory_order_acquire);
  if (now >= consumed_ && now <= position()) consumed_ = now;
}

uint64_t RingOut::unread() const noexcept {
  if (!is_open()) return 0;
  const uint64_t now = std::atomic_ref(ring_.control->consumed).load(std::memory_order_acquire);
  return position() - (now >= consumed_ && now <= position() ? now : consumed_);
}

// The nearer of two limits: what the reader still has to read, and where frames go round.
void RingOut::set_end() noexcept {
  const uint64_t free = ring_.bytes - (position() - consumed_);
  const uint64_t room = free < 2 * wire::header_bytes ? 0 : free - wire::header_bytes;
  end_ = cursor_ + std::min<uint64_t>(room, to_round_end());
}

// The caller has found no room up to end_, which may be out of date. In this order:
//   1. Publish the batch: the reader has to see it before it can free its space.
//   2. Read how far the reader is now.
//   3. If the frame does not fit before the place where frames go round, write a pad and go on with the next lap. As with a
//      frame, the word behind the pad, at the start of that lap, becomes zero before the pad is visible. Without space for
//      the pad there is no room.
//   4. Set end_ anew.
std::byte* RingOut::make_room(size_t length) noexcept {
  if (!is_open() || length > max_length_) return nullptr;
  const size_t need = wire::stride(length);
  const bool holding = batch_end_ != nullptr;
  if (holding) flush();
  update_consumed();
  if (need > to_round_end()) {
    const uint64_t pad = ring_.to_next_lap(position());
    if (pad + wire::header_bytes > ring_.bytes - (position() - consumed_)) return nullptr;
    std::byte* const next = ring_.data + ring_start;
    std::byte* const here = cursor_;
    store_header(next, 0);
    lap_ += ring_.bytes;
    cursor_ = next;
    store_header(here, wire::encode(wire::Kind::pad, 0, 0, static_cast<uint32_t>(pad - wire::header_bytes)));
  }
  set_end();
  if (holding) start_batch();
  return need <= static_cast<size_t>(end_ - cursor_) ? cursor_ : nullptr;
}

namespace {

constexpr size_t page = 4096;  // each ring begins on one of its own
constexpr uint64_t idle_ns = 1'000'000'000;

}  // namespace

// The bytes of a hole read as zero, and so does a frame that has not come.
uint64_t RingOut::trim(uint64_t now_ns) noexcept {
  if (!is_open() || round_end_ == usual_end_) return UINT64_MAX;
  if (std::exchange(were_pieces_, false)) pieces_until_ns_ = now_ns;
  if (now_ns < pieces_until_ns_ + idle_ns) return pieces_until_ns_ + idle_ns;
  if (unread() != 0) return now_ns + idle_ns;
  round_end_ = usual_end_;
  set_end();
  const auto usual = (reinterpret_cast<uintptr_t>(usual_end_) + wire::header_bytes + page - 1) / page * page;
  const auto all = reinterpret_cast<uintptr_t>(ring_.data + ring_.bytes) / page * page;
  if (usual < all) (void)::madvise(reinterpret_cast<void*>(usual), all - usual, MADV_REMOVE);
  return UINT64_MAX;
}

// From here on all of the ring is used, so that what is written next was read long ago: its lines have left the caches of
// single cores, and neither core waits for the other one's.
size_t RingOut::put_gathered(std::span<const GatheredFrame> frames) noexcept {
  if (is_open()) {
    were_pieces_ = true;
    round_end_ = ring_.last_place();
    set_end();
  }
  return OutStream::put_gathered(frames);
}

// Wakes a sleeping reader. From the second frame of a poll on, frames are held back as a batch.
void RingOut::slow_commit() noexcept {
  if (batch_end_ != nullptr) {
    publish();
    start_batch();
    return;
  }
  if (__atomic_load_n(slow_commit_flag_, __ATOMIC_RELAXED) != 0) wake_reader();
  if (!speed::hold || *poll_number_ != last_poll_) return;
  start_batch();
  list_.add(*this);
}

namespace {

constexpr size_t half_bytes(size_t ring_bytes) noexcept {
  return (ring_memory_bytes(ring_bytes) + page - 1) / page * page;
}

}  // namespace

RingMemory::RingMemory(RingMemory&& other) noexcept { *this = std::move(other); }

RingMemory& RingMemory::operator=(RingMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<RingMemory> RingMemory::create(size_t bytes) {
  RingMemory made;
  made.descriptor_ = Fd(memfd_create("threechains-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.descriptor_) return fail(TC_ERR_IO, "creating memory to share with a peer: {}", system_words(errno));
  const int fd = made.descriptor_.get();
  if (ftruncate(fd, static_cast<off_t>(2 * half_bytes(bytes))) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(TC_ERR_NO_MEMORY, "{} bytes to share with a peer: {}", 2 * half_bytes(bytes), system_words(errno));
  TC_CHECK(made.map(bytes));
  RingIn::start(made.written_by(Side::creator));
  RingIn::start(made.written_by(Side::receiver));
  return made;
}

Result<RingMemory> RingMemory::adopt(Fd descriptor, size_t bytes) {
  if (!ring_size_is_valid(bytes))
    return fail(TC_ERR_MALFORMED, "it offers rings of {} bytes when a power of two from {} to {} is taken", bytes,
                min_ring_bytes, max_ring_bytes);
  struct stat file{};
  struct statfs system{};
  const int fd = descriptor.get();
  const int seals = fd >= 0 ? fcntl(fd, F_GET_SEALS) : -1;
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
    return fail(TC_ERR_MALFORMED, "it offers memory whose size is not sealed");
  if (fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC || fstat(fd, &file) != 0)
    return fail(TC_ERR_MALFORMED, "it offers something that is not shared memory");
  if (file.st_size != static_cast<off_t>(2 * half_bytes(bytes)))
    return fail(TC_ERR_MALFORMED, "it offers {} bytes of memory when two rings of {} take {}", file.st_size, bytes,
                2 * half_bytes(bytes));
  RingMemory made;
  made.descriptor_ = std::move(descriptor);
  TC_CHECK(made.map(bytes));
  return made;
}

Status RingMemory::map(size_t bytes) {
  void* const memory = mmap(nullptr, 2 * half_bytes(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (memory == MAP_FAILED)
    return fail(TC_ERR_NO_MEMORY, "mapping {} bytes shared with a peer: {}", 2 * half_bytes(bytes),
                system_words(errno));
  memory_ = memory;
  bytes_ = bytes;
  return {};
}

void RingMemory::unmap() noexcept {
  if (memory_ != nullptr) munmap(memory_, 2 * half_bytes(bytes_));
  memory_ = nullptr;
}

RingView RingMemory::written_by(Side side) const noexcept {
  auto* const first = static_cast<std::byte*>(memory_);
  return RingView::at(side == Side::creator ? first : first + half_bytes(bytes_), bytes_);
}

}  // namespace tc::transport
