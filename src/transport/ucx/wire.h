// SPDX-License-Identifier: Apache-2.0
//
// What a connection sends to its peer's worker: messages of frames, and signals between the two fabrics. Each message
// begins with a mark of eight bytes: the token that the peer gave us for this connection (16 bits of place, 32 random ones)
// and a sequence number of 16 bits. A message that does not follow its predecessor loses the connection instead of being
// misread.
//
// Thread: the node's.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <vector>

#include "base/bytes.h"
#include "transport/ucx/batch_out.h"
#include "transport/ucx/endpoint.h"

namespace tc::transport {

// Active message ids.
inline constexpr unsigned am_batch = 1, am_signal = 3;

// The first byte of a signal.
enum class Signal : uint8_t {
  wake = 1,      // you slept, and there is something for you
  credit = 2,    // so many bytes of your frames were taken off
  sleeping = 3,  // I sleep, having taken so many bytes: puts wake nobody
};

class Wire {
 public:
  // What happens to it is told where no more can be done about it.
  class Owner {
   public:
    virtual void on_wire_lost(Error why) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  explicit Wire(Owner& owner) noexcept : owner_(owner) {}
  ~Wire();

  void open(std::shared_ptr<UcxEndpoint> endpoint, uint64_t their_token) noexcept;
  void shut() noexcept { endpoint_.reset(); }
  bool is_open() const noexcept { return endpoint_ != nullptr; }
  UcxEndpoint* endpoint() const noexcept { return endpoint_.get(); }
  const std::shared_ptr<UcxEndpoint>& shared_endpoint() const noexcept { return endpoint_; }

  // `size` bytes of frames that lie at base() of a buffer. The mark goes in front of them: one piece of memory, and no
  // header to UCX, which then sends a small message by its shortest way.
  void send_batch(OutBuffer& buffer, size_t size) noexcept;
  void send_signal(Signal signal, uint64_t value) noexcept;
  // Tells of an operation that UCX refused.
  void fail(std::string_view what, ucs_status_t status) noexcept;

 private:
  struct SignalMessage;
  uint64_t next_mark() noexcept;

  Owner& owner_;
  std::shared_ptr<UcxEndpoint> endpoint_;
  uint64_t their_token_ = 0;
  uint16_t next_number_ = 0;
};

}  // namespace tc::transport
