// SPDX-License-Identifier: Apache-2.0
#include "node/statistics.h"

#include <fmt/format.h>

#include <string>

#include "node/identity.h"

namespace tc::node {

namespace {

constexpr auto total = Statistic::Kind::total;
constexpr auto now = Statistic::Kind::now;

constexpr Statistic table[] = {
    {"executed", "calls", "Ifuncs that ran.", &Numbers::executed, total},
    {"failures", "calls", "Calls that ended badly here.", &Numbers::failures, total},
    {"stuck", "reports", "Calls reported for running longer than execution-limit.", &Numbers::stuck, total},
    {"cell-calls", "calls", "Of the ifuncs that ran, those in cells.", &Numbers::cell_calls, total},
    {"cell-deaths", "cells", "Cells that code has ended, or that were killed at execution-limit.",
     &Numbers::cell_deaths, total},
    {"cell-data-waits", "times", "Ordinary calls in cells that waited for named data which another one had.",
     &Numbers::cell_data_waits, total},

    {"codes", "ifuncs", "Codes that are loaded.", &Numbers::codes, now},
    {"code-bytes", "bytes", "Memory of the loaded codes, as code-budget counts it.", &Numbers::code_bytes, now},
    {"code-loads", "ifuncs", "Codes that were loaded, ever.", &Numbers::code_loads, total},
    {"object-loads", "ifuncs", "Of these, from an object slice; the others were compiled from bitcode.",
     &Numbers::object_loads, total},
    {"baseline-compiles", "ifuncs", "Compilations with few optimizations, so that a call need not wait long.",
     &Numbers::baseline_compiles, total},
    {"tuned", "ifuncs", "Codes that were replaced by code compiled for this CPU.", &Numbers::tuned, total},
    {"code-evictions", "ifuncs", "Codes that were dropped to keep within code-budget.", &Numbers::code_evictions,
     total},
    {"rebinds", "ifuncs", "Ifuncs that were bound to a newer library.", &Numbers::rebinds, total},
    {"retired", "pieces", "Pieces of code that were replaced and are not freed yet.", &Numbers::retired, now},
    {"cache-hits", "ifuncs", "Codes that were found in cache-dir.", &Numbers::cache_hits, total},
    {"load-ns", "ns", "Of the last never-seen ifunc: its check, and its load or compilation.", &Numbers::load_ns, now},
    {"first-execution-ns", "ns",
     "Of the last never-seen ifunc: from the last byte received to the end of its first execution.",
     &Numbers::first_execution_ns, now},

    {"links", "connections", "Connections to peers.", &Numbers::links, now},
    {"dropped-links", "connections", "Connections that were lost.", &Numbers::dropped_links, total},
    {"refused-peers", "connections", "Peers that were turned away before they had greeted.", &Numbers::refused_peers,
     total},
    {"denied-codes", "ifuncs", "Times that code was not run because of who sent or signed it.", &Numbers::denied_codes,
     total},
    {"throttled", "times",
     "Times that a peer had to wait because it sent more messages than its rate, or too many calls without reading the "
     "answers.",
     &Numbers::throttled, total},
    {"late-answers", "answers", "Answers for which nobody waited any more.", &Numbers::late_answers, total},

    {"code-bytes-sent", "bytes", "Code given to peers.", &Numbers::code_bytes_sent, total},
    {"needs", "requests", "Times that this node asked a peer for code that it lacked.", &Numbers::needs, total},
    {"slice-requests", "requests", "Times that code for another processor was asked for, to pass it on.",
     &Numbers::slice_requests, total},
    {"compile-requests", "ifuncs", "Ifuncs that compile-at was asked for.", &Numbers::compile_requests, total},
    {"compiled-for-others", "ifuncs", "Ifuncs that were compiled for other nodes.", &Numbers::compiled_for_others,
     total},
};

}  // namespace

static_assert(std::size(table) <= wire::most_statistics, "one answer tells them all");

std::span<const Statistic> statistics() noexcept { return table; }

std::string lines_of(const wire::NodeReport& report) {
  auto lines = fmt::format("name {}\nversion {}\n", report.name, report.version);
  if (report.node_id != Identity::no_id) lines += fmt::format("id {}\n", report.node_id);
  lines += fmt::format("uptime-ns {}\n", report.uptime_ns);
  if (!report.running.empty()) lines += fmt::format("running {}\n", report.running);
  lines += fmt::format("draining {}\n", report.is_draining ? 1 : 0);
  for (const auto& [name, value] : report.numbers) lines += fmt::format("stat {} {}\n", name, value);
  return lines;
}

}  // namespace tc::node
