// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/side.h"

#include <stdlib.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "common/embedded.h"
#include "common/ping.h"
#include "ucp_ifunc/reader.h"

TC_EMBED(count_ifunc, TC_COUNT_IFUNC)
TC_EMBED(reader_ifunc, TC_READER_IFUNC)

namespace tc::bench {

namespace {

constexpr unsigned am_id = 11, ifunc_am_id = 12;
constexpr uint64_t polls_between_checks = 1u << 16;
constexpr size_t header_room = 64;         // of a cached frame
constexpr size_t code_room = 16 * 1024;    // of the first one
constexpr size_t ring_bytes = 512 * 1024;  // so that a ring of small messages stays in the caches
constexpr uint64_t most_slots = 1024, fewest_slots = 4;

// The API registers files, so the ifuncs that this program contains are written to a folder.
Result<TemporaryDirectory> make_library_folder() {
  TC_ASSIGN(auto folder, TemporaryDirectory::create());
  TC_CHECK(write_file_atomically(folder.file("count.ifunc"), count_ifunc()));
  TC_CHECK(write_file_atomically(folder.file("reader.ifunc"), reader_ifunc()));
  ::setenv("UCX_IFUNC_LIB_DIR", folder.path().c_str(), 1);
  return folder;
}

Status check_ifunc(ucs_status_t status, const char* what, tc_status_t code = TC_ERR_INTERNAL) {
  if (status == UCS_OK) [[likely]]
    return {};
  return fail(code, "{}: {}: {}", what, ucs_status_string(status), ucp_ifunc_error());
}

size_t on_lines(size_t bytes) noexcept { return (bytes + 63) & ~size_t{63}; }
// Two answers may be under way: each of the ring's halves has a slot for its own.
uint64_t answer_at(uint64_t half) noexcept { return half % 2 * (code_room / 2); }

}  // namespace

size_t Side::first_slot() const noexcept { return on_lines(largest_ + code_room); }
size_t Side::slot() const noexcept { return on_lines(header_room + payload_); }
uint64_t Side::ring_slots() const noexcept {
  return std::clamp<uint64_t>(ring_bytes / slot() & ~uint64_t{1}, fewest_slots, most_slots);
}

Side::Side(size_t largest, bool read)
    : largest_(largest), read_(read), am_payload_(largest, std::byte{1}), am_landing_(largest) {}

Side::~Side() {
  if (msg_.frame != nullptr) ucp_ifunc_msg_free(msg_);
  if (answer_.frame != nullptr) ucp_ifunc_msg_free(answer_);
  if (ifunc_ != nullptr) ucp_deregister_ifunc(party_->context(), ifunc_);
}

Result<std::unique_ptr<Side>> Side::create(const UcpIfuncOptions& options) {
  std::unique_ptr<Side> side(new Side(options.largest, options.read));
  TC_CHECK(side->open(options));
  return side;
}

Status Side::open(const UcpIfuncOptions& options) {
  TC_ASSIGN(const auto transport, BenchTransport::parse(options.transport));
  TC_ASSIGN(party_,
            UcxParty::create(transport.ucx_tls, UCP_FEATURE_AM | UCP_FEATURE_RMA, UcxParty::PeerFailure::fatal));
  TC_ASSIGN(folder_, make_library_folder());  // not before: UCX warns of variables like ours that it does not know
  TC_CHECK(map_memory(options.memory == "own"));
  TC_CHECK(party_->handle(am_id, &Side::on_am, this));
  TC_CHECK(check_ifunc(ucp_ifunc_am_register(party_->worker(), party_->context(), ifunc_am_id, &count_),
                       "ucp_ifunc_am_register"));
  std::string name = read_ ? "reader" : "count";
  return check_ifunc(ucp_register_ifunc(party_->context(), {name.data(), 0, 1}, &ifunc_), "ucp_register_ifunc");
}

Status Side::map_memory(bool own_memory) {
  const size_t size = first_slot() + std::max(ring_bytes, fewest_slots * (largest_ + header_room + 64));
  if (own_memory) {
    void* own = nullptr;
    if (posix_memalign(&own, 4096, size) != 0) return fail(TC_ERR_NO_MEMORY, "no memory for {} bytes", size);
    own_.reset(own);
  }
  TC_ASSIGN(auto mapped, UcxMemory::map(*party_, size, own_.get()));
  memory_.emplace(std::move(mapped));
  std::ranges::fill(memory_->bytes(), std::byte{0});
  return {};
}

Status Side::connect(const std::string& contact) {
  GetContact theirs;
  read_words(contact, theirs);
  TC_ASSIGN(auto reached, RemoteMemory::reach(*party_, theirs));
  remote_.emplace(std::move(reached));
  return {};
}

Status Side::message(size_t payload, ucp_ifunc_msg_t& made) {
  return check_ifunc(ucp_ifunc_msg_create(ifunc_, &payload, sizeof payload, &made), "ucp_ifunc_msg_create");
}

Status Side::warm_up() {
  TC_CHECK(message(1, answer_));
  const auto before = counted();
  TC_CHECK(send_ifunc(answer_, 0));
  TC_CHECK(flush());
  return await(Way::ifunc, before + 1);
}

Status Side::use(size_t payload) {
  if (msg_.frame != nullptr) ucp_ifunc_msg_free(std::exchange(msg_, {}));
  payload_ = payload;
  return message(payload, msg_);
}

// The predeployed handler: does what the ifunc does.
void Side::handle(const void* data, size_t size) noexcept { read_and_count(data, read_ ? size : 0, &count_); }

// The data of a large message has to be fetched, as in any program that uses it.
ucs_status_t Side::on_am(void* self, const void*, size_t, void* data, size_t size, const ucp_am_recv_param_t* param) {
  auto& side = *static_cast<Side*>(self);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    side.handle(data, size);
    return UCS_OK;
  }
  ucp_request_param_t receive{};
  receive.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  receive.cb.recv_am = &Side::on_fetched;
  receive.user_data = self;
  auto* const request = ucp_am_recv_data_nbx(side.party_->worker(), data, side.am_landing_.data(), size, &receive);
  return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_INPROGRESS;
}

void Side::on_fetched(void* request, ucs_status_t, size_t size, void* self) {
  auto& side = *static_cast<Side*>(self);
  side.handle(side.am_landing_.data(), size);
  ucp_request_free(request);
}

Status Side::finish_all() {
  for (auto& request : in_flight_) TC_CHECK(party_->finish(std::exchange(request, nullptr), "ucp_am_send_nbx"));
  return {};
}

Status Side::send_ifunc(const ucp_ifunc_msg_t& message, uint64_t at) noexcept {
  const auto status = ucp_ifunc_send_nbix(remote_->endpoint(), message, remote_->address() + at, remote_->key());
  return status == UCS_INPROGRESS ? Status{} : check_ifunc(status, "ucp_ifunc_send_nbix", TC_ERR_IO);
}

Status Side::send_am(size_t size) {
  static constexpr uint64_t header = 1;
  auto& place = in_flight_[next_in_flight_++ % window];
  TC_CHECK(party_->finish(std::exchange(place, nullptr), "ucp_am_send_nbx"));
  const ucp_request_param_t param{};
  place = ucp_am_send_nbx(remote_->endpoint(), am_id, &header, sizeof header, am_payload_.data(), size, &param);
  return {};
}

Status Side::send(Way way) {
  if (way == Way::ifunc) return send_ifunc(msg_, 0);
  if (way == Way::am) return send_am(payload_);
  auto& place = in_flight_[next_in_flight_++ % window];
  TC_CHECK(party_->finish(std::exchange(place, nullptr), "ucp_ifunc_am_send_nbx"));
  const ucp_request_param_t param{};
  place = ucp_ifunc_am_send_nbx(remote_->endpoint(), ifunc_am_id, msg_, &param);
  return {};
}

Status Side::poll_slot(uint64_t at, size_t room) noexcept {
  const auto status = ucp_poll_ifunc(party_->context(), memory_->bytes().data() + at, room, &count_, party_->worker());
  return status == UCS_ERR_NO_MESSAGE ? Status{} : check_ifunc(status, "ucp_poll_ifunc");
}

// Calls `step` until `wanted` have run here.
template <class Step>
Status Side::until(uint64_t wanted, Step step) const {
  const auto deadline = Deadline::after_ms(ping_limit_ms);
  for (uint64_t polls = 1; counted() < wanted; ++polls) {
    TC_CHECK(step());
    if (polls % polls_between_checks == 0 && deadline.passed())
      return fail(TC_ERR_TIMEOUT, "{} of {} messages came within {} ms", counted(), wanted, ping_limit_ms);
  }
  return {};
}

Status Side::await(Way way, uint64_t wanted) {
  if (way == Way::ifunc) return until(wanted, [this] { return poll_slot(0, first_slot()); });
  return until(wanted, [this]() -> Status {
    progress();
    return {};
  });
}

Status Side::await_answer(uint64_t half, uint64_t wanted) {
  return until(wanted, [this, half] { return poll_slot(answer_at(half), code_room / 2); });
}

Result<double> Side::ping(Way way, uint64_t rounds) {
  const auto before = counted();
  const auto started = now_ns();
  for (uint64_t i = 1; i <= rounds; ++i) {
    TC_CHECK(send(way));
    TC_CHECK(await(way, before + i));
  }
  const auto spent = now_ns() - started;
  TC_CHECK(finish_all());
  return static_cast<double>(spent) / static_cast<double>(rounds) / 2;
}

Status Side::pong(Way way, uint64_t rounds) {
  const auto before = counted();
  for (uint64_t i = 1; i <= rounds; ++i) {
    TC_CHECK(await(way, before + i));
    TC_CHECK(send(way));
  }
  TC_CHECK(flush());
  return finish_all();
}

// The ring is filled in halves; the target answers after each, and the source is never more than both ahead. Active
// Messages have UCX's own buffers.
Result<double> Side::send_stream(Way way, uint64_t messages) {
  const auto before = counted();
  const auto started = now_ns();
  if (way != Way::ifunc) {
    for (uint64_t i = 0; i < messages; ++i) TC_CHECK(send(way));
    TC_CHECK(finish_all());
    TC_CHECK(await(way, before + 1));
    return per_second(messages, now_ns() - started);
  }
  const auto slots = ring_slots(), halves = messages / (slots / 2);
  for (uint64_t half = 0; half < halves; ++half) {
    if (half >= 2) TC_CHECK(await_answer(half, before + half - 1));
    const uint64_t first = half * (slots / 2) % slots;
    for (uint64_t i = first; i < first + slots / 2; ++i) TC_CHECK(send_ifunc(msg_, first_slot() + i * slot()));
    TC_CHECK(flush());
  }
  TC_CHECK(await_answer(halves, before + halves - 1));
  TC_CHECK(await_answer(halves + 1, before + halves));
  return per_second(messages, now_ns() - started);
}

Status Side::take_stream(Way way, uint64_t messages) {
  const auto before = counted();
  if (way != Way::ifunc) {
    TC_CHECK(await(way, before + messages));
    TC_CHECK(send_am(1));
    TC_CHECK(flush());
    return finish_all();
  }
  const auto slots = ring_slots();
  for (uint64_t i = 0; i < messages; ++i) {
    const uint64_t at = first_slot() + i % slots * slot();
    TC_CHECK(until(before + i + 1, [&] { return poll_slot(at, slot()); }));
    if ((i + 1) % (slots / 2) == 0) TC_CHECK(send_ifunc(answer_, answer_at(i / (slots / 2))));
  }
  return flush();
}

}  // namespace tc::bench
