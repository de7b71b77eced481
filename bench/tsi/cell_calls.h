// SPDX-License-Identifier: Apache-2.0
//
// Cached calls with an answer, to a target that runs the code in its process and to one that runs it in a cell. A cell
// is a third process, and machines may have two CPUs. So caller and targets are nodes of this process, polled in turn
// on the first CPU, and the cell has the second one. Thread: the one that measures.
#pragma once

#include <memory>
#include <optional>

#include "common/machine.h"
#include "common/node.h"

namespace tc::bench {

class CellCalls {
 public:
  enum class Where : uint8_t { process, cell };

  // With the code in both places. Nothing else may run on the second CPU of the placement while the calls are measured.
  // An error where this machine has no cells.
  static Result<std::unique_ptr<CellCalls>> create(const BenchTransport& transport, const Placement& placement);
  ~CellCalls();

  // ns from a call to its answer, one after the other.
  Result<double> latency(Where where, uint64_t calls);

 private:
  struct Target {
    threechains::Node node;
    std::optional<threechains::Endpoint> endpoint;
    uint64_t answers = 0;
  };

  CellCalls(threechains::Node caller, threechains::Node in_process, threechains::Node isolated)
      : caller_(std::move(caller)), in_process_{std::move(in_process), {}}, isolated_{std::move(isolated), {}} {}
  static Result<std::unique_ptr<CellCalls>> create_here(const BenchTransport& transport);
  Status connect(Target& target);
  Status call(Target& target);

  threechains::Node caller_;
  Target in_process_, isolated_;
  std::optional<threechains::Ifunc> ifunc_;
  std::optional<threechains::Message> message_;
};

}  // namespace tc::bench
