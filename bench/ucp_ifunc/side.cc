// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/side.h"

#include <stdlib.h>
#include <threechains/ucp_ifunc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "common/embedded.h"
#include "common/transport.h"
#include "common/ucx_party.h"
#include "tsi/tsi.h"
#include "ucp_ifunc/reader.h"

TC_EMBED(count_ifunc, TC_COUNT_IFUNC)
TC_EMBED(reader_ifunc, TC_READER_IFUNC)

namespace tc::bench {

namespace {

constexpr unsigned am_id = 11, ifunc_am_id = 12;
constexpr uint64_t limit_ms = 60'000;
constexpr uint64_t polls_between_checks = 1u << 16;
constexpr size_t header_room = 64;         // of a cached frame
constexpr size_t code_room = 16 * 1024;    // of the first one
constexpr size_t ring_bytes = 512 * 1024;  // so that a ring of small messages stays in the caches
constexpr uint64_t most_slots = 1024, fewest_slots = 4;
constexpr size_t window = 16;  // Active Messages in flight

// The API registers files, so the ifuncs that this program contains are written to a folder.
Result<TemporaryDirectory> make_library_folder() {
  TC_ASSIGN(auto folder, TemporaryDirectory::create());
  TC_CHECK(write_file_atomically(folder.file("count.ifunc"), count_ifunc()));
  TC_CHECK(write_file_atomically(folder.file("reader.ifunc"), reader_ifunc()));
  ::setenv("UCX_IFUNC_LIB_DIR", folder.path().c_str(), 1);
  return folder;
}

double per_second(uint64_t messages, uint64_t ns) {
  return static_cast<double>(messages) * 1e9 / static_cast<double>(ns);
}

}  // namespace

struct Side::State {
  std::optional<TemporaryDirectory> folder;
  size_t largest = 0;
  bool read = false;  // payloads are read, not only counted

  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_ep_h ep = nullptr;
  ucp_mem_h mapped = nullptr;
  void* own = nullptr;
  std::byte* memory = nullptr;  // a slot for a first frame or an answer, then the ring
  uint64_t remote = 0;
  ucp_rkey_h rkey = nullptr;

  ucp_ifunc_h ifunc = nullptr;
  ucp_ifunc_msg_t msg{}, answer{};
  size_t payload = 0;
  std::vector<std::byte> am_payload, am_landing;
  std::array<ucs_status_ptr_t, window> in_flight{};
  size_t next_in_flight = 0;
  alignas(64) uint64_t count = 0;  // what has run here

  ~State();
  Status open(const UcpIfuncOptions& options);
  Status map_memory(bool own_memory);
  size_t first_slot() const noexcept { return (largest + code_room + 63) & ~size_t{63}; }
  size_t slot() const noexcept { return (header_room + payload + 63) & ~size_t{63}; }
  // An even number: the ring has two halves.
  uint64_t slots() const noexcept {
    return std::clamp<uint64_t>(ring_bytes / slot() & ~uint64_t{1}, fewest_slots, most_slots);
  }
  uint64_t counted() const noexcept { return *const_cast<const volatile uint64_t*>(&count); }

  void finish(ucs_status_ptr_t& request) noexcept {
    if (UCS_PTR_IS_PTR(request)) {
      while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker);
      ucp_request_free(request);
    }
    request = nullptr;
  }
  void finish_all() noexcept {
    for (auto& request : in_flight) finish(request);
  }
  void flush() noexcept {
    const ucp_request_param_t param{};
    ucs_status_ptr_t request = ucp_ep_flush_nbx(ep, &param);
    finish(request);
  }
  // `at`: where in the other side's memory.
  Status send_ifunc(const ucp_ifunc_msg_t& message, uint64_t at) noexcept;
  Status send_am(size_t size) noexcept;
  Status send_ifunc_am() noexcept;
  Status poll_slot(uint64_t at, size_t room) noexcept {
    const auto status = ucp_poll_ifunc(context, memory + at, room, &count, worker);
    if (status == UCS_OK || status == UCS_ERR_NO_MESSAGE) [[likely]]
      return {};
    return fail(TC_ERR_INTERNAL, "ucp_poll_ifunc: {}: {}", ucs_status_string(status), ucp_ifunc_error());
  }
  // Calls `step` until `wanted` have run here.
  template <class Step>
  Status until(uint64_t wanted, Step step) const {
    const auto deadline = Deadline::after_ms(limit_ms);
    for (uint64_t polls = 1; counted() < wanted; ++polls) {
      TC_CHECK(step());
      if (polls % polls_between_checks == 0 && deadline.passed())
        return fail(TC_ERR_TIMEOUT, "{} of {} messages came within {} ms", counted(), wanted, limit_ms);
    }
    return {};
  }
  Status await(Way way, uint64_t wanted) {
    if (way == Way::ifunc) return until(wanted, [this] { return poll_slot(0, first_slot()); });
    return until(wanted, [this]() -> Status {
      ucp_worker_progress(worker);
      return {};
    });
  }
  Status send(Way way) noexcept {
    if (way == Way::ifunc) return send_ifunc(msg, 0);
    return way == Way::am ? send_am(payload) : send_ifunc_am();
  }
  // Two answers may be under way: each of the ring's halves has a slot for its own.
  static uint64_t answer_at(uint64_t half) noexcept { return half % 2 * (code_room / 2); }
  Status await_answer(uint64_t half, uint64_t wanted) {
    return until(wanted, [this, half] { return poll_slot(answer_at(half), code_room / 2); });
  }
};

namespace {

// The predeployed handler: does what the ifunc does.
void handle(Side::State& state, const void* data, size_t size) {
  read_and_count(data, state.read ? size : 0, &state.count);
}

void on_fetched(void* request, ucs_status_t, size_t size, void* state) {
  auto& to = *static_cast<Side::State*>(state);
  handle(to, to.am_landing.data(), size);
  ucp_request_free(request);
}

// The data of a large message has to be fetched, as in any program that uses it.
ucs_status_t on_am(void* arg, const void*, size_t, void* data, size_t size, const ucp_am_recv_param_t* param) {
  auto& state = *static_cast<Side::State*>(arg);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    handle(state, data, size);
    return UCS_OK;
  }
  ucp_request_param_t receive{};
  receive.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  receive.cb.recv_am = on_fetched;
  receive.user_data = &state;
  auto* const request = ucp_am_recv_data_nbx(state.worker, data, state.am_landing.data(), size, &receive);
  return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_INPROGRESS;
}

}  // namespace

Side::State::~State() {
  if (msg.frame != nullptr) ucp_ifunc_msg_free(msg);
  if (answer.frame != nullptr) ucp_ifunc_msg_free(answer);
  if (ifunc != nullptr) ucp_deregister_ifunc(context, ifunc);
  if (rkey != nullptr) ucp_rkey_destroy(rkey);
  if (ep != nullptr) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    ucs_status_ptr_t request = ucp_ep_close_nbx(ep, &param);
    finish(request);
  }
  if (mapped != nullptr) ucp_mem_unmap(context, mapped);
  if (worker != nullptr) ucp_worker_destroy(worker);
  if (context != nullptr) ucp_cleanup(context);
  std::free(own);
}

Status Side::State::map_memory(bool own_memory) {
  const size_t size = first_slot() + std::max(ring_bytes, fewest_slots * (largest + header_room + 64));
  ucp_mem_map_params_t map{};
  map.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  map.length = size;
  if (own_memory) {
    if (posix_memalign(&own, 4096, size) != 0) return fail(TC_ERR_NO_MEMORY, "no memory for {} bytes", size);
    map.address = own;
  } else {
    map.flags = UCP_MEM_MAP_ALLOCATE;
  }
  TC_CHECK(check_ucx(ucp_mem_map(context, &map, &mapped), "ucp_mem_map"));
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  TC_CHECK(check_ucx(ucp_mem_query(mapped, &attributes), "ucp_mem_query"));
  memory = static_cast<std::byte*>(attributes.address);
  std::fill_n(memory, size, std::byte{0});
  return {};
}

Status Side::State::open(const UcpIfuncOptions& options) {
  largest = options.largest;
  read = options.read;
  am_payload.resize(largest, std::byte{1});
  am_landing.resize(largest);
  TC_ASSIGN(const auto transport, BenchTransport::parse(options.transport));
  ucp_config_t* config = nullptr;
  TC_CHECK(check_ucx(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read"));
  ucp_config_modify(config, "TLS", transport.ucx_tls.c_str());
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_RMA;
  const auto started = ucp_init(&params, config, &context);
  ucp_config_release(config);
  TC_CHECK(check_ucx(started, "ucp_init"));
  ucp_worker_params_t worker_params{};
  TC_CHECK(check_ucx(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create"));
  TC_ASSIGN(folder, make_library_folder());  // not before: UCX warns of variables like ours that it does not know
  TC_CHECK(map_memory(options.memory == "own"));
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = am_id;
  handler.cb = on_am;
  handler.arg = this;
  TC_CHECK(check_ucx(ucp_worker_set_am_recv_handler(worker, &handler), "ucp_worker_set_am_recv_handler"));
  TC_CHECK(check_ucx(ucp_ifunc_am_register(worker, context, ifunc_am_id, &count), "ucp_ifunc_am_register"));
  std::string name = read ? "reader" : "count";
  const auto status = ucp_register_ifunc(context, {name.data(), 0, 1}, &ifunc);
  if (status != UCS_OK) return fail(TC_ERR_INTERNAL, "ucp_register_ifunc: {}", ucp_ifunc_error());
  return {};
}

Status Side::State::send_ifunc(const ucp_ifunc_msg_t& message, uint64_t at) noexcept {
  const auto status = ucp_ifunc_send_nbix(ep, message, remote + at, rkey);
  if (status == UCS_OK) [[likely]]
    return {};
  if (status != UCS_INPROGRESS) return fail(TC_ERR_IO, "ucp_ifunc_send_nbix: {}", ucp_ifunc_error());
  return {};
}

Status Side::State::send_am(size_t size) noexcept {
  static constexpr uint64_t header = 1;
  auto& place = in_flight[next_in_flight++ % window];
  finish(place);
  const ucp_request_param_t param{};
  place = ucp_am_send_nbx(ep, am_id, &header, sizeof header, am_payload.data(), size, &param);
  if (UCS_PTR_IS_ERR(place)) [[unlikely]]
    return fail(TC_ERR_IO, "ucp_am_send_nbx: {}", ucs_status_string(UCS_PTR_STATUS(place)));
  return {};
}

Status Side::State::send_ifunc_am() noexcept {
  auto& place = in_flight[next_in_flight++ % window];
  finish(place);
  const ucp_request_param_t param{};
  place = ucp_ifunc_am_send_nbx(ep, ifunc_am_id, msg, &param);
  if (UCS_PTR_IS_ERR(place)) [[unlikely]]
    return fail(TC_ERR_IO, "ucp_ifunc_am_send_nbx: {}", ucs_status_string(UCS_PTR_STATUS(place)));
  return {};
}

Side::Side(std::unique_ptr<State> state) : state_(std::move(state)) {}
Side::~Side() = default;

Result<std::unique_ptr<Side>> Side::create(const UcpIfuncOptions& options) {
  auto state = std::make_unique<State>();
  TC_CHECK(state->open(options));
  return std::unique_ptr<Side>(new Side(std::move(state)));
}

Result<std::string> Side::address() {
  ucp_address_t* address = nullptr;
  size_t address_size = 0, key_size = 0;
  void* key = nullptr;
  TC_CHECK(check_ucx(ucp_worker_get_address(state_->worker, &address, &address_size), "ucp_worker_get_address"));
  TC_CHECK(check_ucx(ucp_rkey_pack(state_->context, state_->mapped, &key, &key_size), "ucp_rkey_pack"));
  auto text = fmt::format("{} {} {}", to_hex(address, address_size), to_hex(key, key_size),
                          reinterpret_cast<uintptr_t>(state_->memory));
  ucp_worker_release_address(state_->worker, address);
  ucp_rkey_buffer_release(key);
  return text;
}

Status Side::connect(const std::string& address) {
  std::string worker, key;
  std::istringstream(address) >> worker >> key >> state_->remote;
  const auto worker_bytes = from_hex(worker), key_bytes = from_hex(key);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(worker_bytes.data());
  TC_CHECK(check_ucx(ucp_ep_create(state_->worker, &params, &state_->ep), "ucp_ep_create"));
  return check_ucx(ucp_ep_rkey_unpack(state_->ep, key_bytes.data(), &state_->rkey), "ucp_ep_rkey_unpack");
}

Status Side::warm_up() {
  size_t one = 1;
  if (ucp_ifunc_msg_create(state_->ifunc, &one, sizeof one, &state_->answer) != UCS_OK)
    return fail(TC_ERR_INTERNAL, "ucp_ifunc_msg_create: {}", ucp_ifunc_error());
  const auto before = state_->counted();
  TC_CHECK(state_->send_ifunc(state_->answer, 0));
  state_->flush();
  return state_->await(Way::ifunc, before + 1);
}

Status Side::use(size_t payload) {
  auto& s = *state_;
  if (s.msg.frame != nullptr) ucp_ifunc_msg_free(s.msg);
  s.msg = {};
  s.payload = payload;
  const auto status = ucp_ifunc_msg_create(s.ifunc, &payload, sizeof payload, &s.msg);
  return status == UCS_OK ? Status{} : fail(TC_ERR_INTERNAL, "ucp_ifunc_msg_create: {}", ucp_ifunc_error());
}

Result<double> Side::ping(Way way, uint64_t rounds) {
  const auto before = state_->counted();
  const auto started = now_ns();
  for (uint64_t i = 1; i <= rounds; ++i) {
    TC_CHECK(state_->send(way));
    TC_CHECK(state_->await(way, before + i));
  }
  const auto spent = now_ns() - started;
  state_->finish_all();
  return static_cast<double>(spent) / static_cast<double>(rounds) / 2;
}

Status Side::pong(Way way, uint64_t rounds) {
  const auto before = state_->counted();
  for (uint64_t i = 1; i <= rounds; ++i) {
    TC_CHECK(state_->await(way, before + i));
    TC_CHECK(state_->send(way));
  }
  state_->flush();
  state_->finish_all();
  return {};
}

// The ring is filled in halves; the target answers after each, and the source is never more than both ahead. Active
// Messages have UCX's own buffers.
Result<double> Side::send_stream(Way way, uint64_t messages) {
  auto& s = *state_;
  const auto before = s.counted();
  const auto started = now_ns();
  if (way != Way::ifunc) {
    for (uint64_t i = 0; i < messages; ++i) TC_CHECK(s.send(way));
    s.finish_all();
    TC_CHECK(s.await(way, before + 1));
    return per_second(messages, now_ns() - started);
  }
  const auto slots = s.slots(), halves = messages / (slots / 2);
  for (uint64_t half = 0; half < halves; ++half) {
    if (half >= 2) TC_CHECK(s.await_answer(half, before + half - 1));
    const uint64_t first = half * (slots / 2) % slots;
    for (uint64_t i = first; i < first + slots / 2; ++i) TC_CHECK(s.send_ifunc(s.msg, s.first_slot() + i * s.slot()));
    s.flush();
  }
  TC_CHECK(s.await_answer(halves, before + halves - 1));
  TC_CHECK(s.await_answer(halves + 1, before + halves));
  return per_second(messages, now_ns() - started);
}

Status Side::take_stream(Way way, uint64_t messages) {
  auto& s = *state_;
  const auto before = s.counted();
  if (way != Way::ifunc) {
    TC_CHECK(s.await(way, before + messages));
    TC_CHECK(s.send_am(1));
    s.flush();
    s.finish_all();
    return {};
  }
  const auto slots = s.slots();
  for (uint64_t i = 0; i < messages; ++i) {
    const uint64_t at = s.first_slot() + i % slots * s.slot();
    TC_CHECK(s.until(before + i + 1, [&] { return s.poll_slot(at, s.slot()); }));
    if ((i + 1) % (slots / 2) == 0) TC_CHECK(s.send_ifunc(s.answer, State::answer_at(i / (slots / 2))));
  }
  s.flush();
  return {};
}

uint64_t Side::ring_slots() const noexcept { return state_->slots(); }
void Side::progress() noexcept { ucp_worker_progress(state_->worker); }

}  // namespace tc::bench
