// SPDX-License-Identifier: Apache-2.0
//
// Modes `ifunc_bitcode` and `ifunc_object`: examples/05-pointer-chase/chaser.c, sent by the client through the public
// API. Nothing of it is at the servers before.
#pragma once

#include <threechains/threechains.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "common/transport.h"
#include "dapc/mode.h"
#include "wire/target_triple.h"

namespace tc::bench {

enum class CodeForm : uint8_t { bitcode, object };

class IfuncChaseServer {
 public:
  struct Place {
    BenchTransport transport;
    std::string cluster;  // addresses of all servers' nodes, by index
    std::string trust;
    uint32_t index;
  };
  // A node that runs code of this form only and exposes `shard`.
  static Result<std::unique_ptr<IfuncChaseServer>> create(CodeForm form, const Place& place, std::span<uint64_t> shard);
  ~IfuncChaseServer();
  // Runs what comes; returns after the first of it, at wake() or at the timeout.
  void wait(uint32_t timeout_ms) { tc_node_wait(node_, timeout_ms, nullptr); }
  void wake() noexcept { tc_node_wake(node_); }  // any thread
  // Waits until all bitcode that came is compiled for this CPU.
  Status settle();
  uint64_t executed() const;  // ifuncs, so far

 private:
  IfuncChaseServer() = default;
  CodeForm form_ = CodeForm::object;
  tc_node_t* node_ = nullptr;
};

class IfuncChaseClient final : public ChaseClient {
 public:
  // `host`: the address to listen on, so that answers find us. `chaser`: an .ifunc file; empty: chaser.c.
  static Result<std::unique_ptr<IfuncChaseClient>> create(const BenchTransport& transport, const std::string& host,
                                                          const std::string& trust, uint64_t shard_entries,
                                                          const std::string& chaser);
  // A further chaser, over the same connections.
  Status add(ChaseMode mode, ByteView bundle);
  // Whose chaser run() sends from now on: an added one, or any other mode for the first.
  void chase_by(ChaseMode mode);
  ~IfuncChaseClient() override;
  Status connect(const std::vector<std::string>& servers, const Watch& watch);
  Status run(const Chases& chases, const Watch& watch) override;
  // Time of one hop of an ifunc that goes round the first `round` servers, in us.
  Result<double> hop_us(uint32_t round, const Watch& watch);

 private:
  struct Slot {
    tc_message_t* message = nullptr;
    tc_future_t* future = nullptr;
    size_t chase = 0;
  };
  struct Chaser {
    tc_ifunc_t* ifunc = nullptr;
    std::vector<Slot> slots;
  };
  IfuncChaseClient() = default;
  Status start_next(Slot& slot);
  Status take_answer(Slot& slot);
  Status wait_for(tc_future_t* future, const Watch& watch);
  void abandon();

  uint64_t shard_entries_ = 0;
  Chases chases_;
  size_t started_ = 0, finished_ = 0;
  tc_node_t* node_ = nullptr;
  Chaser chaser_;
  std::map<ChaseMode, Chaser> added_;
  Chaser* chosen_ = &chaser_;
  tc_ifunc_t* hop_ = nullptr;
  std::vector<tc_endpoint_t*> servers_;
};

}  // namespace tc::bench
