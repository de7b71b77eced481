// SPDX-License-Identifier: Apache-2.0
//
// The servers' processes, as the client sees them. Thread: the one that measures.
#pragma once

#include <memory>
#include <vector>

#include "common/network.h"
#include "common/talk.h"
#include "dapc/dapc.h"
#include "dapc/get_chase.h"

namespace tc::bench {

class Servers {
 public:
  // Starts `count` processes of this program, each in its namespace when there is a network.
  static Result<std::unique_ptr<Servers>> start(const DapcOptions& options, uint32_t count, const Network* network);

  const std::vector<std::string>& am() const noexcept { return am_; }  // workers' addresses
  const std::vector<GetContact>& get() const noexcept { return get_; }
  const std::vector<std::string>& nodes(ChaseMode mode) const noexcept {
    return mode == ChaseMode::ifunc_object ? objects_ : bitcode_;
  }

  // Sends a line to all of them and waits for `expected` from each.
  Status tell(const std::string& line, const std::string& expected, const Watch& watch);
  // The sum of the numbers that they answer to a line.
  Result<uint64_t> ask_sum(const std::string& line, const Watch& watch);
  // An error when a server has ended, which says how.
  Status alive();
  // The error itself; or, when a server has ended, an error that names that server as the cause.
  Error explain(Error error);

 private:
  Servers() = default;
  Status hear_contacts(const Watch& watch);
  Result<std::string> hear(uint32_t index, const Watch& watch);
  std::vector<std::unique_ptr<Partner>> partners_;
  std::vector<std::string> am_, bitcode_, objects_;
  std::vector<GetContact> get_;
};

}  // namespace tc::bench
