// SPDX-License-Identifier: Apache-2.0
//
// A connection to the PMIx server that started this process, and the few calls we make by it.
//
// Thread: one. Calls may block as long as the server does not answer: see client.h.
#pragma once

#include <pmix.h>

#include <optional>

#include "node/bootstrap/bootstrap.h"

namespace tc::node::bootstrap {

class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // The launcher takes a process that ends without it for one that crashed.
  ~Session();

  // TC_ERR_DISCONNECTED: nobody there.
  Status open();
  uint32_t rank() const noexcept { return self_.rank; }
  // A number that the launcher knows about this job: PMIX_JOB_SIZE, PMIX_LOCAL_SIZE.
  Result<uint32_t> number(const char* key);
  // Makes `text` known to all nodes that call fence() afterwards.
  Status publish(const std::string& key, const std::string& text);
  // Waits for all nodes of the job. False: not within the deadline.
  Result<bool> fence(Deadline deadline);
  // What `rank` published, if it did; the launcher is asked at most once.
  Result<std::optional<std::string>> published(uint32_t rank, const std::string& key);

 private:
  bool open_ = false;
  pmix_proc_t self_{};
};

}  // namespace tc::node::bootstrap
