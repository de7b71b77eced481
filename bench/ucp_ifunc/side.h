// SPDX-License-Identifier: Apache-2.0
//
// One process of the benchmark: a UCX program that owns its context, worker, endpoint and memory. Both ways to send go
// over the same endpoint, and both sides run the same code. Thread: one in each process.
#pragma once

#include <threechains/ucp_ifunc.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "common/ucx_party.h"
#include "ucp_ifunc/ucp_ifunc_bench.h"

namespace tc::bench {

enum class Way : uint8_t {
  am,            // an Active Message and its predeployed handler
  ifunc,         // an ifunc into a slot that is polled
  send_receive,  // an ifunc that worker progress alone runs
};

class Side {
 public:
  static Result<std::unique_ptr<Side>> create(const UcpIfuncOptions& options);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // Worker address, memory and its key, for the other side.
  Result<std::string> contact() const { return memory_->contact(); }
  Status connect(const std::string& contact);
  // Sends the code over, so that what is measured is cached: after connect(), on both sides at once.
  Status warm_up();
  // From now on messages have payloads of this size.
  Status use(size_t payload);

  // Round trips: one side begins, the other answers. Mean ns of one way.
  Result<double> ping(Way way, uint64_t rounds);
  Status pong(Way way, uint64_t rounds);
  // A stream: messages a second that ran at the target, as the source sees it.
  Result<double> send_stream(Way way, uint64_t messages);
  Status take_stream(Way way, uint64_t messages);

  // Slots in the ring of a stream, for the payload in use: `messages` above is a multiple of it, at least twice as much.
  // An even number: the ring has two halves.
  uint64_t ring_slots() const noexcept;
  void progress() noexcept { party_->progress(); }

 private:
  static constexpr size_t window = 16;  // Active Messages in flight

  Side(size_t largest, bool read);
  Status open(const UcpIfuncOptions& options);
  Status map_memory(bool own_memory);
  Status message(size_t payload, ucp_ifunc_msg_t& made);
  size_t first_slot() const noexcept;
  size_t slot() const noexcept;
  uint64_t counted() const noexcept { return *const_cast<const volatile uint64_t*>(&count_); }
  Status finish_all();
  Status flush() { return party_->flush(remote_->endpoint()); }
  // `at`: where in the other side's memory.
  Status send_ifunc(const ucp_ifunc_msg_t& message, uint64_t at) noexcept;
  Status send_am(size_t size);
  Status send(Way way);
  Status poll_slot(uint64_t at, size_t room) noexcept;
  template <class Step>
  Status until(uint64_t wanted, Step step) const;
  Status await(Way way, uint64_t wanted);
  Status await_answer(uint64_t half, uint64_t wanted);
  void handle(const void* data, size_t size) noexcept;
  static ucs_status_t on_am(void* self, const void*, size_t, void* data, size_t size, const ucp_am_recv_param_t* param);
  static void on_fetched(void* request, ucs_status_t, size_t size, void* self);

  const size_t largest_;
  const bool read_;  // payloads are read, not only counted
  std::unique_ptr<UcxParty> party_;
  std::optional<TemporaryDirectory> folder_;
  std::unique_ptr<void, decltype(&std::free)> own_{nullptr, &std::free};
  std::optional<UcxMemory> memory_;  // a slot for a first frame or an answer, then the ring
  std::optional<RemoteMemory> remote_;
  ucp_ifunc_h ifunc_ = nullptr;
  ucp_ifunc_msg_t msg_{}, answer_{};
  size_t payload_ = 0;
  std::vector<std::byte> am_payload_, am_landing_;
  std::array<ucs_status_ptr_t, window> in_flight_{};
  size_t next_in_flight_ = 0;
  alignas(64) uint64_t count_ = 0;  // what has run here
};

}  // namespace tc::bench
