// SPDX-License-Identifier: Apache-2.0
//
// What each message from or to a peer touches, of all peers of a node side by side. With more nodes than cores it is
// cold whenever a message comes, and then pages count more than lines: the processor has to find out anew where each
// lies. In the peers themselves it would be two pages for each of them, here it is one for all.
//
// Thread: the node's.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <memory>
#include <vector>

#include "transport/batch_in.h"
#include "transport/batch_out.h"
#include "transport/transport.h"

namespace tc::transport {

enum class PeerStage : uint8_t { connecting, greeting, up, closing, over };

struct PeerEntry {
  static constexpr uint64_t no_token = ~uint64_t{0};

  struct alignas(64) In {
    uint64_t token = no_token;         // marks messages from the peer
    Connection* connection = nullptr;  // null: nobody holds it yet, or any more
    BatchIn::Bypass bypass;
    uint16_t next_received = 0;
    PeerStage stage = PeerStage::connecting;
    Way way = Way::automatic;  // by which the peer writes to us, as it said
    bool is_lost = false;      // the peer has a reason for it
  } in;

  struct alignas(64) Out {
    ucp_ep_h endpoint = nullptr;  // which stays the peer's; null: there is none yet, or no more
    uint64_t their_token = 0;     // marks messages to the peer
    BatchOut::Bypass bypass;
    uint16_t next_sent = 0;

    // The mark of the next message of any kind: with its number.
    uint64_t next_header() noexcept {
      return (their_token & ~(uint64_t{0xffff} << 48)) | static_cast<uint64_t>(next_sent++) << 48;
    }
  } out;
};

class PeerTable {
 public:
  static constexpr size_t block_entries = 32;
  struct alignas(4096) Block {
    std::array<PeerEntry, block_entries> entries;
  };

  PeerTable() : blocks_{std::shared_ptr<Block>(new Block)}, first_(blocks_.front().get()) {}

  // `place` is at most one beyond all that were made room for.
  void make_room(size_t place) {
    if (place / block_entries == blocks_.size()) blocks_.emplace_back(new Block);
  }
  bool has(size_t place) const noexcept { return place / block_entries < blocks_.size(); }
  PeerEntry& operator[](size_t place) const noexcept {
    Block* const block = place < block_entries ? first_ : blocks_[place / block_entries].get();
    return block->entries[place % block_entries];
  }
  // The same, for a peer that may outlive the table.
  std::shared_ptr<PeerEntry> share(size_t place) const noexcept {
    return {blocks_[place / block_entries], &(*this)[place]};
  }

 private:
  std::vector<std::shared_ptr<Block>> blocks_;
  Block* first_;
};

}  // namespace tc::transport
