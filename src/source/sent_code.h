// SPDX-License-Identifier: Apache-2.0
//
// The bundles that this node has sent to anybody: kept once for all peers, so that a peer which let go of code can be sent
// it again (NEED). Beyond a budget the bundle that was sent first goes. What is registered can be sent again all the
// same; what is not must be registered once more, and the peer's caller is told so.
//
// Thread: the node's.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "wire/bundle.h"

namespace tc::source {

class SentCode {
 public:
  // `budget`: bytes of memory that what is kept may take.
  explicit SentCode(size_t budget) noexcept : budget_(budget) {}

  // `bundle` is about to be sent.
  void keep(const Bundle& bundle);
  // Signatures that were found later, of the same code. False: that code is not kept, or has all of them.
  bool add_signatures(const Bundle& bundle);
  // Null: it was never sent, or had to go.
  const Bundle* find(const ContentId& id) const noexcept;
  // The slices `which` as the code section of a frame (wire::append_code()). The last one is remembered, so that calls which
  // always bring their code are quick to send.
  std::shared_ptr<const Bytes> section(const Bundle& bundle, uint64_t which);

  // How much of the budget is used, and how much a bundle would use.
  size_t bytes() const noexcept { return bytes_; }
  static size_t cost(const Bundle& bundle) noexcept;

 private:
  struct Kept {
    Bundle bundle;
    size_t bytes;
  };
  using Order = std::list<Kept>;  // the one that was sent first comes first
  void recount(Kept& kept) noexcept;
  void forget(Order::iterator kept) noexcept;

  const size_t budget_;
  size_t bytes_ = 0;
  Order kept_;
  std::unordered_map<ContentId, Order::iterator> by_content_;
  struct Encoded {
    ContentId id;
    uint64_t which = 0;
    std::vector<CodeSignature> signatures;
    std::shared_ptr<const Bytes> bytes;
  };
  Encoded last_;
};

}  // namespace tc::source
