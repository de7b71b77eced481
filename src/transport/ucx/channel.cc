// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/channel.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "transport/ucx/fabric.h"

namespace tc::transport {

namespace {

// About as much as UCX's memory for a message in pieces: what is kept costs no more than twice its bytes.
constexpr size_t least_kept = 8 * 1024;

}  // namespace

UcxChannel::UcxChannel(UcxFabric& fabric) noexcept : fabric_(fabric), staging_(fabric.messages_in_flight) {}

Result<std::unique_ptr<UcxChannel>> UcxChannel::create(UcxFabric& fabric, UcxConnection& owner) {
  std::unique_ptr<UcxChannel> made;
  if (fabric.options().puts) {
    TC_ASSIGN(made, PutChannel::create(fabric));
  } else {
    made = std::make_unique<AmChannel>(fabric);
  }
  TC_ASSIGN(made->token_, fabric.add(*made));
  made->owner = &owner;
  return made;
}

UcxChannel::~UcxChannel() {
  fabric_.remove(*this);
  fabric_.retire(std::move(endpoint_));
}

UcxDetails UcxChannel::details() const {
  return {.version = UcxWorker::version(),
          .tcp_alone = fabric_.worker().tcp_alone(),
          .token = token_,
          .window_bytes = static_cast<uint32_t>(fabric_.window()),
          .worker_address = fabric_.worker().address()};
}

Status UcxChannel::open(const UcxDetails& theirs) {
  TC_ASSIGN(endpoint_, fabric_.endpoint_to(theirs.worker_address));
  their_token_ = theirs.token;
  window_ = theirs.window_bytes;
  return open_memory(theirs);
}

Result<size_t> UcxChannel::send_gathered(std::span<const ByteView> parts) {
  const size_t total = size_of(parts);
  size_t taken = 0;
  while (taken != total && has_room()) {
    const auto room = static_cast<size_t>(window_ - unread());
    const size_t size = std::min({total - taken, room, fabric_.options().batch_bytes});
    TC_CHECK(transmit(parts, taken, size, sent_));
    sent_ += size;
    taken += size;
    if (std::exchange(peer_is_asleep_, false)) TC_CHECK(signal(Signal::wake, 0));
  }
  return taken;
}

// What has arrived comes before any failure: the peer may have ended its side behind it.
Result<size_t> UcxChannel::receive(std::span<std::byte> into) {
  TC_ASSIGN(const size_t size, take(into, taken_));
  if (size == 0 && error_) return fail(*error_);
  if (size == 0 && endpoint_->failed()) return fail(TC_ERR_DISCONNECTED, "{}", ucx_message(endpoint_->failure()));
  taken_ += size;
  if (taken_ - announced_ >= fabric_.window() / 4 && !error_ && !endpoint_->failed()) {  // enough to be worth a message
    announced_ = taken_;
    if (auto told = signal(Signal::credit, taken_); !told) error_ = std::move(told).error();
  }
  return size;
}

void UcxChannel::discard_arrived() noexcept try {
  std::byte discarded[16 * 1024];
  while (is_open()) {
    const auto got = receive(discarded);
    if (!got || *got == 0) return;
  }
} catch (const std::exception&) {  // no memory: what comes next is discarded
}

Status UcxChannel::post(unsigned id, std::span<const ByteView> parts, size_t from, size_t size) {
  if (endpoint_->failed()) return fail(TC_ERR_DISCONNECTED, "{}", ucx_message(endpoint_->failure()));
  const uint64_t prefix = their_token_ | static_cast<uint64_t>(next_out_++) << 48;
  std::byte* const message = staging_.begin(sizeof prefix + size);
  std::memcpy(message, &prefix, sizeof prefix);
  gather(message + sizeof prefix, parts, from, size);
  auto parameters = staging_.parameters();
  parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  const auto status =
      staging_.track(ucp_am_send_nbx(endpoint_->get(), id, nullptr, 0, message, sizeof prefix + size, &parameters));
  staging_.end();
  if (status != UCS_OK) return fail(TC_ERR_DISCONNECTED, "sending to it: {}", ucx_message(status));
  return {};
}

Status UcxChannel::signal(Signal what, uint64_t value) {
  std::byte message[1 + sizeof value];
  message[0] = static_cast<std::byte>(what);
  std::memcpy(message + 1, &value, sizeof value);
  const ByteView all(message);
  return post(am_signal, {&all, 1}, 0, all.size());
}

bool UcxChannel::on_message(unsigned id, uint16_t number, ByteView data, void* message) noexcept {
  if (error_) return false;
  bool is_kept = false;
  try {
    const auto take = [&]() -> Result<bool> {
      if (number != next_in_++) return fail(TC_ERR_MALFORMED, "message {} came when {} was next", number, next_in_ - 1);
      if (id != am_signal) return on_bytes(data, message);
      TC_CHECK(on_signal(data));
      return false;
    };
    auto kept = take();
    if (kept)
      is_kept = *kept;
    else
      error_ = std::move(kept).error();
  } catch (const std::exception& problem) {
    error_ = Error{TC_ERR_NO_MEMORY, problem.what()};
  }
  fabric_.schedule(*this);
  return is_kept;
}

Status UcxChannel::on_signal(ByteView data) {
  Reader r(data);
  const auto what = static_cast<Signal>(r.u8());
  const uint64_t value = r.u64();
  TC_CHECK(r.finish_exactly("a signal"));
  if (what == Signal::wake) {
    announced_sleep_ = false;
    return {};
  }
  const bool is_plausible = value >= credited_ && value <= sent_;
  if (is_plausible && what == Signal::credit) {
    credited_ = value;
    return {};
  }
  if (is_plausible && what == Signal::sleeping) {  // possible before open(), when both are 0
    peer_is_asleep_ = value == sent_;
    return peer_is_asleep_ ? Status{} : signal(Signal::wake, 0);
  }
  return fail(TC_ERR_MALFORMED, "its signal {} has an impossible value, {}", static_cast<int>(what), value);
}

// Sent once: the peer answers with a wake and its next bytes, or at once when it has sent more than we have taken.
void UcxChannel::announce_sleep() {
  if (announced_sleep_ || !is_open()) return;
  announced_sleep_ = true;
  if (auto told = signal(Signal::sleeping, taken_); !told) error_ = std::move(told).error();
}

Result<size_t> AmChannel::take(std::span<std::byte> into, uint64_t) {
  size_t taken = 0;
  while (read_ != inbox_.size() && taken != into.size()) {
    auto& first = inbox_[read_];
    const size_t size = std::min(first.size, into.size() - taken);
    const auto* const from = first.message != nullptr ? first.bytes.data() : copied_.data() + copied_read_;
    std::memcpy(into.data() + taken, from, size);
    taken += size;
    first.size -= size;
    if (first.message != nullptr)
      first.bytes = first.bytes.subspan(size);
    else
      copied_read_ += size;
    if (first.size != 0) break;
    first.message.reset();
    ++read_;
  }
  waiting_ -= taken;
  if (read_ == inbox_.size()) {
    inbox_.clear();
    copied_.clear();
    read_ = copied_read_ = 0;
  }
  return taken;
}

Result<bool> AmChannel::on_bytes(ByteView bytes, void* message) {
  if (bytes.size() > fabric_.window() - waiting_)
    return fail(TC_ERR_LIMIT, "it sent {} bytes when {} wait already and {} are its limit", bytes.size(), waiting_,
                fabric_.window());
  const bool is_kept = bytes.size() >= least_kept;
  if (is_kept)
    add(bytes).message.reset(message);  // only now: without memory for the inbox, UCX frees the message
  else
    copy(bytes);
  waiting_ += bytes.size();
  return is_kept;
}

AmChannel::Arrived& AmChannel::add(ByteView bytes) {
  if (2 * read_ >= inbox_.size()) {
    inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<ptrdiff_t>(read_));
    read_ = 0;
  }
  return inbox_.emplace_back(Arrived{{nullptr, Release{fabric_.worker().get()}}, bytes, bytes.size()});
}

void AmChannel::copy(ByteView bytes) {
  if (copied_read_ >= fabric_.window()) {
    copied_.erase(copied_.begin(), copied_.begin() + static_cast<ptrdiff_t>(copied_read_));
    copied_read_ = 0;
  }
  copied_.insert(copied_.end(), bytes.begin(), bytes.end());
  if (read_ != inbox_.size() && inbox_.back().message == nullptr)
    inbox_.back().size += bytes.size();
  else
    add(bytes);
}

namespace {

constexpr size_t ring_offset = 64;  // behind the counter

}  // namespace

Result<std::unique_ptr<UcxChannel>> PutChannel::create(UcxFabric& fabric) {
  TC_ASSIGN(auto memory, OwnMemory::allocate(fabric.worker().context(), ring_offset + fabric.window()));
  return std::unique_ptr<UcxChannel>(new PutChannel(fabric, std::move(memory)));
}

// UCX may still use both for operations in flight.
PutChannel::~PutChannel() {
  if (endpoint_ != nullptr) endpoint_->keep(std::move(memory_), std::move(key_));
}

UcxDetails PutChannel::details() const {
  auto ours = UcxChannel::details();
  ours.address = reinterpret_cast<uintptr_t>(memory_->address());
  if (auto key = memory_->packed_key()) ours.key = std::move(*key);
  return ours;
}

Status PutChannel::open_memory(const UcxDetails& theirs) {
  if (theirs.key.empty()) return fail(TC_ERR_UNSUPPORTED, "it has no memory for puts");
  TC_ASSIGN(key_, RemoteKey::unpack(endpoint_->get(), theirs.key));
  address_ = theirs.address;
  bytes_ = theirs.window_bytes;
  return {};
}

ucs_status_t PutChannel::put(const std::byte* from, size_t size, uint64_t offset) noexcept {
  if (size == 0) return UCS_OK;
  const auto parameters = staging_.parameters();
  return staging_.track(ucp_put_nbx(endpoint_->get(), from, size, address_ + offset, key_->get(), &parameters));
}

// While a fence of newer UCX waits, messages come in, and their answers use the staging memory: nothing may be in it then.
Status PutChannel::transmit(std::span<const ByteView> parts, size_t from, size_t size, uint64_t position) {
  const uint64_t place = position % bytes_;
  const size_t first = std::min<size_t>(size, bytes_ - place);
  std::byte* const bytes = staging_.begin(size);
  gather(bytes, parts, from, size);
  auto status = put(bytes, first, ring_offset + place);
  if (status == UCS_OK) status = put(bytes + first, size - first, ring_offset);
  staging_.end();
  if (status == UCS_OK) status = ucp_worker_fence(fabric_.worker().get());
  if (status == UCS_OK) status = put_counter(position + size);
  if (status != UCS_OK) return fail(TC_ERR_DISCONNECTED, "putting into its memory: {}", ucx_message(status));
  return {};
}

ucs_status_t PutChannel::put_counter(uint64_t counter) {
  std::byte* const staged = staging_.begin(sizeof counter);
  std::memcpy(staged, &counter, sizeof counter);
  const auto status = put(staged, sizeof counter, 0);
  staging_.end();
  return status;
}

uint64_t PutChannel::counter() const noexcept {
  return std::atomic_ref(*static_cast<uint64_t*>(memory_->address())).load(std::memory_order_acquire);
}

Result<size_t> PutChannel::take(std::span<std::byte> into, uint64_t taken) {
  const uint64_t window = fabric_.window(), put = counter() - taken;
  if (put > window) return fail(TC_ERR_MALFORMED, "it put {} bytes into memory of {}", put, window);
  const size_t size = std::min(into.size(), static_cast<size_t>(put));
  const auto* const ring = static_cast<const std::byte*>(memory_->address()) + ring_offset;
  const size_t first = std::min<size_t>(size, window - taken % window);
  std::memcpy(into.data(), ring + taken % window, first);
  std::memcpy(into.data() + first, ring, size - first);
  return size;
}

Result<bool> PutChannel::on_bytes(ByteView bytes, void*) {
  return fail(TC_ERR_MALFORMED, "it sent {} bytes in a message when it uses puts", bytes.size());
}

}  // namespace tc::transport
