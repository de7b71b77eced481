// SPDX-License-Identifier: Apache-2.0
//
// Modes `ifunc_bitcode` and `ifunc_object`: examples/05-pointer-chase/chaser.c, sent by the client through the public
// API. Nothing of it is at the servers before.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "common/node.h"
#include "dapc/mode.h"
#include "wire/target_triple.h"

namespace tc::bench {

enum class CodeForm : uint8_t { bitcode, object };

// A server's node, which runs code of this form only and exposes `shard`.
Result<threechains::Node> make_chase_server(CodeForm form, const ServerPlace& place, std::span<uint64_t> shard);

class IfuncChaseClient final : public ChaseClient {
 public:
  // `host`: the address to listen on, so that answers find us. `chaser`: an .ifunc file; empty: chaser.c.
  static Result<std::unique_ptr<IfuncChaseClient>> create(const BenchTransport& transport, const std::string& host,
                                                          uint64_t shard_entries, const std::string& chaser);
  // A further chaser, over the same connections.
  Status add(ChaseMode mode, ByteView bundle);
  // Chooses the chaser that run() sends from now on: the one that was added for `mode`, else the one of create().
  void chase_by(ChaseMode mode);
  ~IfuncChaseClient() override;
  Status connect(const std::vector<std::string>& servers, const Watch& watch);
  Status run(const Chases& chases, const Watch& watch) override;
  // Time of one hop of an ifunc that goes round the first `round` servers, in us.
  Result<double> hop_us(uint32_t round, const Watch& watch);

 private:
  struct Slot {
    threechains::Message message;
    std::optional<threechains::Future> future = {};
    size_t chase = 0;
  };
  struct Chaser {
    std::optional<threechains::Ifunc> ifunc;
    std::vector<Slot> slots;
  };
  explicit IfuncChaseClient(threechains::Node node) : node_(std::move(node)) {}
  Status start_next(Slot& slot);
  Status take_answer(Slot& slot);
  Status wait_for(const threechains::Future& future, const Watch& watch);
  void abandon();

  uint64_t shard_entries_ = 0;
  Chases chases_;
  size_t started_ = 0, finished_ = 0;
  threechains::Node node_;
  std::map<ChaseMode, Chaser> chasers_;
  Chaser* chosen_ = nullptr;
  std::optional<threechains::Ifunc> hop_;
  std::vector<threechains::Endpoint> servers_;
};

}  // namespace tc::bench
