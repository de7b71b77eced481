// SPDX-License-Identifier: Apache-2.0
#include "node/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>

#include "node/common.h"
#include "node/identity.h"

namespace tc::node {

namespace {

constexpr auto total = Statistic::Kind::total;
constexpr auto now = Statistic::Kind::now;

constexpr Statistic table[] = {
    {"executed", "calls", "Ifuncs that ran.", &Numbers::executed, total},
    {"failures", "calls", "Calls that ended badly here.", &Numbers::failures, total},
    {"stuck", "reports", "Calls reported for running longer than execution-limit.", &Numbers::stuck, total},
    {"waiting-calls", "calls", "Calls that wait for a thread or a cell.", &Numbers::waiting_calls, now},
    {"cell-calls", "calls", "Of the ifuncs that ran, those in cells.", &Numbers::cell_calls, total},
    {"cell-deaths", "cells", "Cells that code has ended, or that were killed at execution-limit.",
     &Numbers::cell_deaths, total},
    {"cell-data-waits", "times", "Ordinary calls in cells that waited for named data which another one had.",
     &Numbers::cell_data_waits, total},

    {"codes", "ifuncs", "Codes that are loaded.", &Numbers::codes, now},
    {"code-bytes", "bytes", "Memory of the loaded codes, as code-budget counts it.", &Numbers::code_bytes, now},
    {"code-loads", "ifuncs", "Codes that were loaded, ever.", &Numbers::code_loads, total},
    {"object-loads", "ifuncs",
     "Of these, linked into the node from an object slice; the others from bitcode, or held for cells.",
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
    {"handshakes", "connections", "Encrypted connections that peers have made to this node.", &Numbers::handshakes,
     total},
    {"refused-peers", "connections", "Peers that were turned away before they had greeted.", &Numbers::refused_peers,
     total},
    {"denied-codes", "ifuncs", "Times that code was not run because of who sent or signed it.", &Numbers::denied_codes,
     total},
    {"throttled", "times",
     "Times that a peer had to wait because it sent more messages than its rate, or too many calls without reading the "
     "answers.",
     &Numbers::throttled, total},
    {"late-answers", "answers", "Answers for which nobody waited any more.", &Numbers::late_answers, total},

    {"received-bytes", "bytes", "What has come from peers.", &Numbers::received_bytes, total},
    {"sent-bytes", "bytes", "What has left to peers.", &Numbers::sent_bytes, total},
    {"waiting-bytes", "bytes", "Messages that wait here, as message-memory counts them.", &Numbers::waiting_bytes, now},

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

namespace {

// By tc_status_t; the last is for codes of the ifuncs' own, and for what has no name.
constexpr std::array<const char*, Failures::reasons> reason_names = {
    "ok",       "invalid",     "not_found", "malformed",    "version", "too_large", "denied", "unresolved",
    "no_slice", "compile",     "timeout",   "disconnected", "busy",    "ifunc",     "limit",  "no_memory",
    "io",       "unsupported", "closed",    "internal",     "crashed", "canceled",  "code"};
static_assert(Failures::by_code == TC_ERR_CANCELED + 1);

}  // namespace

uint64_t Failures::all() const noexcept {
  uint64_t sum = 0;
  for (const auto one : counts_) sum += one;
  return sum;
}

std::vector<std::pair<std::string, uint64_t>> Failures::by_reason() const {
  std::vector<std::pair<std::string, uint64_t>> found;
  for (size_t i = 0; i < reason_names.size(); ++i)
    if (counts_[i] != 0) found.emplace_back(reason_names[i], counts_[i]);
  return found;
}

namespace {

std::string text_of(const wire::Times& times) {
  return fmt::format("{},{}", times.sum_ns, fmt::join(times.counts, ","));
}

}  // namespace

std::string lines_of(const wire::NodeReport& report) {
  auto lines = fmt::format("name {}\nversion {}\n", report.name, report.version);
  if (report.node_id != Identity::no_id) lines += fmt::format("id {}\n", report.node_id);
  lines += fmt::format("uptime-ns {}\n", report.uptime_ns);
  if (!report.running.empty()) lines += fmt::format("running {}\n", report.running);
  lines += fmt::format("draining {}\n", report.is_draining ? 1 : 0);
  for (const auto& [name, value] : report.numbers) lines += fmt::format("stat {} {}\n", name, value);
  for (const auto& [name, count] : report.failures) lines += fmt::format("failure {} {}\n", name, count);
  for (const auto& [name, times] : report.times) lines += fmt::format("time {} {}\n", name, text_of(times));
  for (const auto& one : report.ifuncs)
    lines += fmt::format("ifunc {} {} {} {} {}\n", one.calls, one.failures, text_of(one.run), text_of(one.latency),
                         one.name);
  for (const auto& one : report.links)
    lines += fmt::format("link {} {} {} {} {} {}\n", one.transport, one.calls, one.received_bytes, one.sent_bytes,
                         one.waiting_bytes, one.peer);
  return lines;
}

}  // namespace tc::node
