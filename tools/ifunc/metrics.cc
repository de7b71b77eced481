// SPDX-License-Identifier: Apache-2.0
#include "ifunc/metrics.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/clock.h"
#include "base/plugin.h"
#include "ifunc/arguments.h"

namespace tc::command {
namespace {

// A small part of the descriptors, which are the peers'.
unsigned most_connections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 8;
  return static_cast<unsigned>(std::clamp<rlim_t>(limit.rlim_cur / 16, 8, 64));
}

Result<metrics::Factory> open_factory() {
  const auto library = open_plugin(metrics::plugin_name, "");
  if (!library)
    return fail(TC_ERR_INVALID,
                "--metrics needs the plug-in {}, which cannot be loaded ({}); install it with libmicrohttpd and "
                "prometheus-cpp, or leave the option out",
                metrics::plugin_name, library.error().message);
  const auto found = find_in_plugin(*library, metrics::factory_name);
  if (!found) return fail(TC_ERR_INVALID, "--metrics: {}: {}", metrics::plugin_name, found.error().message);
  return reinterpret_cast<metrics::Factory>(*found);
}

// What the node says of itself now. TC_ERR_NO_MEMORY.
Result<std::string> report_of(tc_node_t* node, size_t likely_size) {
  std::string text(likely_size, '\0');
  for (;;) {
    size_t size = 0;
    const auto status = tc_node_report(node, text.data(), text.size(), &size);
    if (status == TC_OK) {
      text.resize(size);
      return text;
    }
    if (status != TC_ERR_LIMIT || size <= text.size()) return fail(status, "{}", tc_error_message());
    text.resize(size);
  }
}

}  // namespace

Status Metrics::start(const std::string& address, const std::vector<std::string>& names) {
  if (address.empty()) return {};
  TC_ASSIGN(const auto where, parse_address(address));
  TC_ASSIGN(const auto factory, open_factory());
  Error error{TC_ERR_INVALID, fmt::format("{} is not of this version of Three-Chains", metrics::plugin_name)};
  server_.reset(
      factory(metrics::plugin_version,
              {.host = where.host, .port = where.port, .names = names, .most_connections = most_connections()},
              {.look = [this] { return look(); }, .ask = [this] { ask(); }, .what_runs = node_.what_runs}, error));
  if (server_ == nullptr) return context("--metrics", std::move(error));
  notified_.store(server_.get());
  return {};
}

void Metrics::answer(tc_node_t* node) {
  if (!is_wanted_.load(std::memory_order_relaxed) || !is_wanted_.exchange(false)) return;
  const auto now = now_ns();
  const auto before = look().report;
  auto text = report_of(node, before == nullptr ? 8192 : before->text.size() + 1024);
  if (!text) return;  // no memory: what was asked stays unanswered, which the page tells
  const auto made = std::make_shared<const metrics::Report>(std::move(*text), now);
  {
    const std::scoped_lock lock(mutex_);
    sight_.report = made;
    sight_.unanswered_since_ns = is_wanted_.load() ? now : 0;
  }
  if (auto* const server = notified_.load()) server->notify();
}

void Metrics::set(metrics::State from, metrics::State to) {
  {
    const std::scoped_lock lock(mutex_);
    if (sight_.state != from) return;
    sight_.state = to;
  }
  if (auto* const server = notified_.load()) server->notify();
}

metrics::NodeSight Metrics::look() {
  const std::scoped_lock lock(mutex_);
  return sight_;
}

void Metrics::ask() {
  {
    const std::scoped_lock lock(mutex_);
    if (sight_.unanswered_since_ns == 0) sight_.unanswered_since_ns = now_ns();
    if (is_wanted_.exchange(true)) return;
  }
  node_.wake();
}

}  // namespace tc::command
