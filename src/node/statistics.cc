// SPDX-License-Identifier: Apache-2.0
#include "node/statistics.h"

#include <string>

namespace tc::node {

namespace {

constexpr Statistic table[] = {
    {"executed", "calls", "Ifuncs that ran.", &Numbers::executed},
    {"failures", "calls", "Calls that ended badly here.", &Numbers::failures},
    {"stuck", "reports", "Calls reported for running longer than execution-limit.", &Numbers::stuck},
    {"cell-calls", "calls", "Of the ifuncs that ran, those in cells.", &Numbers::cell_calls},
    {"cell-deaths", "cells", "Cells that code has ended, or that were killed at execution-limit.",
     &Numbers::cell_deaths},
    {"cell-data-waits", "times", "Ordinary calls in cells that waited for named data which another one had.",
     &Numbers::cell_data_waits},

    {"codes", "ifuncs", "Codes that are loaded.", &Numbers::codes},
    {"code-bytes", "bytes", "Memory of the loaded codes, as code-budget counts it.", &Numbers::code_bytes},
    {"code-loads", "ifuncs", "Codes that were loaded, ever.", &Numbers::code_loads},
    {"object-loads", "ifuncs", "Of these, from an object slice; the others were compiled from bitcode.",
     &Numbers::object_loads},
    {"baseline-compiles", "ifuncs", "Compilations with few optimizations, so that a call need not wait long.",
     &Numbers::baseline_compiles},
    {"tuned", "ifuncs", "Codes that were replaced by code compiled for this CPU.", &Numbers::tuned},
    {"code-evictions", "ifuncs", "Codes that were dropped to keep within code-budget.", &Numbers::code_evictions},
    {"rebinds", "ifuncs", "Ifuncs that were bound to a newer library.", &Numbers::rebinds},
    {"retired", "pieces", "Pieces of code that were replaced and are not freed yet.", &Numbers::retired},
    {"cache-hits", "ifuncs", "Codes that were found in cache-dir.", &Numbers::cache_hits},
    {"load-ns", "ns", "Of the last never-seen ifunc: its check, and its load or compilation.", &Numbers::load_ns},
    {"first-execution-ns", "ns",
     "Of the last never-seen ifunc: from the last byte received to the end of its first execution.",
     &Numbers::first_execution_ns},

    {"links", "connections", "Connections to peers.", &Numbers::links},
    {"dropped-links", "connections", "Connections that were lost.", &Numbers::dropped_links},
    {"refused-peers", "connections", "Peers that were turned away before they had greeted.", &Numbers::refused_peers},
    {"denied-codes", "ifuncs", "Times that code was not run because of who sent or signed it.", &Numbers::denied_codes},
    {"throttled", "times",
     "Times that a peer had to wait because it sent more messages than its rate, or too many calls without reading the "
     "answers.",
     &Numbers::throttled},
    {"late-answers", "answers", "Answers for which nobody waited any more.", &Numbers::late_answers},

    {"code-bytes-sent", "bytes", "Code given to peers.", &Numbers::code_bytes_sent},
    {"needs", "requests", "Times that this node asked a peer for code that it lacked.", &Numbers::needs},
    {"slice-requests", "requests", "Times that code for another processor was asked for, to pass it on.",
     &Numbers::slice_requests},
    {"compile-requests", "ifuncs", "Ifuncs that compile-at was asked for.", &Numbers::compile_requests},
    {"compiled-for-others", "ifuncs", "Ifuncs that were compiled for other nodes.", &Numbers::compiled_for_others},
};

}  // namespace

std::span<const Statistic> statistics() noexcept { return table; }

}  // namespace tc::node
