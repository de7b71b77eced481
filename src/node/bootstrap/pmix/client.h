// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap by PMIx: the rank is the node's number, the job's size their count, and a fence exchanges addresses and keys. The
// launcher vouches for them: only processes that it started can publish in the job.
//
// PMIx is connected to during meet() only. Afterwards nothing of it runs in this process, an application may use MPI
// before, meanwhile or later, and one that ends without destroying its node is not taken for a crashed one.
//
// Thread: any, one meet() at a time in a process. PMIx's calls have no deadline of their own, so they are made on a
// thread that is left behind when its time is up.
#pragma once

#include "node/bootstrap/bootstrap.h"

namespace tc::node::bootstrap {

class PmixClient final : public Bootstrap {
 public:
  explicit PmixClient(const Options& options) : options_(options) {}
  Result<Cluster> meet(const Contact& self, std::optional<uint32_t> id, Deadline deadline) override;

 private:
  const Options options_;
};

}  // namespace tc::node::bootstrap
