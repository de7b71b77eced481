// SPDX-License-Identifier: Apache-2.0
//
// The further processes of the benchmarks, which these start themselves: `ifunc bench partner KIND --NAME VALUE...`.
#include "bulk/measure.h"
#include "common/processes.h"
#include "dapc/dapc.h"
#include "graph/graph_bench.h"
#include "ifunc-bench/commands.h"
#include "mixed/serve.h"
#include "trust_cost/trust_bench.h"
#include "tsi/measure.h"
#include "ucp_ifunc/ucp_ifunc_bench.h"

namespace tc::command {

void add_partner(CLI::App& parent, int& exit_code) {
  auto* const command = parent.add_subcommand("partner", "")->group("")->prefix_command();
  command->callback([command, &exit_code] {
    exit_code = bench::run_as_partner({{"bulk-target", bench::serve_bulk},
                                       {"dapc-server", bench::serve_dapc},
                                       {"graph-server", bench::serve_graph},
                                       {"mixed-target", bench::serve_mixed},
                                       {"trust-flood", bench::serve_trust_flood},
                                       {"trust-target", bench::serve_trust_target},
                                       {"tsi-target", bench::serve_tsi},
                                       {"ucp-ifunc-target", bench::serve_ucp_ifunc}},
                                      command->remaining());
  });
}

}  // namespace tc::command
