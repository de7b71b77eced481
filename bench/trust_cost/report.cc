// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <fmt/format.h>

#include "trust_cost/trust_bench.h"

namespace tc::bench {

namespace {

void add_latency(Table& table, const char* name, const CallLatency& latency) {
  table.row({name, number(latency.median_us.median, "{:.1f}"), quartiles(latency.median_us, "{:.1f}"),
             number(latency.p99_us.median, "{:.1f}")});
}

void put_latency(Json& root, const char* name, const CallLatency& latency) {
  put(root[name], "median_us", latency.median_us);
  put(root[name], "p99_us", latency.p99_us);
}

void put_first_call(Json& root, const char* name, const FirstCall& call) {
  put(root[name], "call_us", call.call_us);
  put(root[name], "first_execution_us", call.first_us);
}

}  // namespace

std::string format_table(const TrustResult& r) {
  Table table(
      fmt::format("Encrypted connections on loopback, {} runs, {} calls; medians with quartiles.\n\n"
                  "Never-seen code, one call of each: without a signature {} us, with one {} us\n"
                  "  of that at the target {} us, {} us\n"
                  "A signature costs {} us\n\n"
                  "Connections: {} a second; CPU time of the target's handshakes: {} us each\n\n"
                  "Calls of a connected peer, us\n",
                  r.options.runs, r.calls, with_quartiles(r.unsigned_code.call_us, "{:.1f}"),
                  with_quartiles(r.signed_code.call_us, "{:.1f}"), with_quartiles(r.unsigned_code.first_us, "{:.1f}"),
                  with_quartiles(r.signed_code.first_us, "{:.1f}"), with_quartiles(r.signature_us, "{:.1f}"),
                  with_quartiles(r.connections_per_s, "{:.0f}"), with_quartiles(r.handshake_cpu_us, "{:.0f}")),
      {{"", -32}, {"median", 10}, {"", 20}, {"p99", 10}});
  add_latency(table, "Quiet", r.quiet);
  add_latency(table, "Flood of handshakes elsewhere", r.elsewhere);
  add_latency(table, "Flood of handshakes here", r.here);
  table.text(fmt::format("The flood is {} half handshakes a second; x quiet {}, x elsewhere {}\n",
                         with_quartiles(r.flood_per_s, "{:.0f}"), with_quartiles(r.flood_to_quiet, "{:.2f}"),
                         with_quartiles(r.flood_to_elsewhere, "{:.2f}")));
  return table.take();
}

std::string format_json(const TrustResult& r) {
  Json root;
  root["bench"] = "trust";
  root["runs"] = r.options.runs;
  put_machine(root, r.machine);
  put_first_call(root, "unsigned", r.unsigned_code);
  put_first_call(root, "signed", r.signed_code);
  put(root, "signature_us", r.signature_us);
  put(root, "connections_per_s", r.connections_per_s);
  put(root, "handshake_cpu_us", r.handshake_cpu_us);
  put_latency(root, "quiet", r.quiet);
  put_latency(root, "flood_elsewhere", r.elsewhere);
  put_latency(root, "flood_here", r.here);
  put(root, "flood_ratio_to_quiet", r.flood_to_quiet);
  put(root, "flood_ratio_to_elsewhere", r.flood_to_elsewhere);
  put(root, "flood_per_s", r.flood_per_s);
  root["calls"] = r.calls;
  return text_of(root);
}

}  // namespace tc::bench
