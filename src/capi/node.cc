// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "capi/handles.h"

using tc::capi::enter;
using tc::capi::guarded;
using tc::capi::guarded_plain;

namespace {

tc::Result<std::unique_ptr<tc::transport::Transport>> make_transport(const tc::node::Config& config,
                                                                     tc::transport::Events& events) {
  return tc::transport::Network::create(config.network, events);
}

// Sets `*executed`, unless it is null, to the number of ifuncs that `node` runs during the life of this object.
class Count {
 public:
  Count(tc_node& node, size_t* executed) noexcept
      : node_(node), executed_(executed), before_(executed != nullptr ? node.node->executed() : 0) {}
  ~Count() {
    if (executed_ != nullptr) *executed_ = static_cast<size_t>(node_.node->executed() - before_);
  }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  tc_node& node_;
  size_t* executed_;
  uint64_t before_;
};

tc::Result<int> descriptor_of(const tc_node& node) {
  const int descriptor = node.node->descriptor();
  if (descriptor < 0) return tc::fail(TC_ERR_UNSUPPORTED, "this transport has no descriptor to wait for");
  return descriptor;
}

constexpr uint64_t no_deadline_ns = uint64_t{1} << 62;

// A timeout for poll(). It is rounded up, because a thread that wakes too early finds nothing to do.
int in_ms(tc::Deadline deadline) noexcept {
  if (deadline.at_ns() == no_deadline_ns) return -1;
  return static_cast<int>(std::min<uint64_t>(deadline.remaining_ns() / 1'000'000 + 1, INT_MAX));
}

const tc::node::Statistic& statistic_of(const tc_statistic_t* handle) noexcept {
  return *reinterpret_cast<const tc::node::Statistic*>(handle);
}

}  // namespace

// Calls on other threads may enter the node until they have ended: functions of the application that they call do.
void tc::capi::end_and_free(tc_node& node) noexcept {
  const auto have_ended = [&] {
    const Pass pass(node.gate, *node.node);
    return node.node->end_handed_calls();
  };
  while (!have_ended())
    while (node.gate.waiting().load() != 0) ::sched_yield();
  (void)node.progress.stop();
  node.node->close_calls();
  delete &node;
}

extern "C" {

tc_status_t tc_node_create(const tc_config_t* config, tc_node_t** node) {
  TC_NOT_NULL(node);
  return guarded([&]() -> tc::Status {
    auto wanted = config != nullptr ? config->config : tc::node::Config::defaults();
    TC_ASSIGN(auto made, tc::node::Node::create(std::move(wanted), make_transport));
    *node = std::make_unique<tc_node>(std::move(made)).release();
    return {};
  });
}

void tc_node_free(tc_node_t* node) {
  if (node == nullptr) return;
  {
    const tc::capi::Pass pass(node->gate, *node->node);
    if (node->node->is_polling() || node->node->is_in_handed_call()) {  // this thread is, as it has the pass
      node->node->close_calls();
      if (!node->progress.end_with([node] { tc::capi::end_and_free(*node); })) node->is_destroyed = true;
      return;
    }
  }
  tc::capi::end_and_free(*node);
}

const char* tc_node_address(const tc_node_t* node) { return node != nullptr ? node->node->address().c_str() : ""; }

uint32_t tc_node_id(const tc_node_t* node) { return node != nullptr ? node->node->node_id() : 0; }
uint32_t tc_node_count(const tc_node_t* node) { return node != nullptr ? node->node->node_count() : 0; }

const char* tc_node_peer_address(const tc_node_t* node, uint32_t number) {
  if (node == nullptr) return "";
  const auto& known = node->node->address_of(number);
  return known.empty() && number == node->node->node_id() ? node->node->address().c_str() : known.c_str();
}

tc_status_t tc_node_export(tc_node_t* node, const char* symbol, void* address) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(symbol);
  TC_NOT_NULL(address);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*node);
    node->node->policy().export_symbol(symbol, address);
    return {};
  });
}

tc_status_t tc_node_expose(tc_node_t* node, const char* name, void* data, size_t size) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(name);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*node);
    return node->node->expose(name, data, size);
  });
}

tc_status_t tc_node_expose_file(tc_node_t* node, const char* name, void* data, size_t size, int fd) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(name);
  TC_NOT_NULL(data);
  return guarded([&]() -> tc::Status {
    TC_ASSIGN(auto file, tc::node::SharedFile::of(fd, size));
    const auto entry = enter(*node);
    return node->node->expose(name, data, size, std::move(file));
  });
}

void tc_node_set_target_args(tc_node_t* node, void* target_args) {
  if (node == nullptr) return;
  const auto entry = enter(*node);
  node->node->executor().target_args = target_args;
}

tc_status_t tc_node_poll(tc_node_t* node, size_t* executed) {
  TC_NOT_NULL(node);
  if (executed == nullptr && !node->gate.is_shared()) [[likely]] {
    const auto status = guarded_plain([&] { node->node->poll(); });
    if (node->is_destroyed && !node->node->is_polling()) [[unlikely]]
      tc::capi::end_and_free(*node);
    return status;
  }
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*node);
    const Count count(*node, executed);
    node->node->poll();
    return {};
  });
}

tc_status_t tc_node_wait(tc_node_t* node, uint32_t timeout_ms, size_t* executed) {
  TC_NOT_NULL(node);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*node);
    const Count count(*node, executed);
    node->node->wait_ms(timeout_ms);
    node->node->expire();
    return {};
  });
}

void tc_node_wake(tc_node_t* node) {
  if (node != nullptr) node->node->wake();
}

tc_status_t tc_node_running_ifunc(const tc_node_t* node, char* name, size_t capacity) {
  TC_NOT_NULL(node);
  if (capacity != 0) TC_NOT_NULL(name);
  return guarded([&]() -> tc::Status {
    const auto running = node->node->running_ifunc();
    if (!running) return tc::fail(TC_ERR_NOT_FOUND, "no ifunc runs at this moment");
    if (capacity == 0) return {};
    const size_t size = std::min(running->size(), capacity - 1);
    std::memcpy(name, running->data(), size);
    name[size] = '\0';
    return {};
  });
}

tc_status_t tc_node_reload_keys(tc_node_t* node) {
  TC_NOT_NULL(node);
  return guarded([&] { return node->node->reload_keys(); });
}

tc_status_t tc_node_fd(tc_node_t* node, int* fd) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(fd);
  return guarded([&]() -> tc::Status {
    TC_ASSIGN(*fd, descriptor_of(*node));
    return {};
  });
}

tc_status_t tc_node_arm(tc_node_t* node, int* timeout_ms) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(timeout_ms);
  return guarded([&]() -> tc::Status {
    if (node->gate.is_shared()) return tc::fail(TC_ERR_INVALID, "a progress thread runs, which waits by itself");
    const auto entry = enter(*node);
    TC_CHECK(descriptor_of(*node));
    auto deadline = tc::Deadline::at_ns(no_deadline_ns);
    if (!node->node->arm(deadline)) return tc::fail(TC_ERR_BUSY, "there is something to do: poll, then arm again");
    *timeout_ms = in_ms(deadline);
    return {};
  });
}

tc_status_t tc_node_start_progress(tc_node_t* node) {
  TC_NOT_NULL(node);
  return guarded([&] { return node->progress.start(tc::capi::Progress::Waiters::sleep); });
}

tc_status_t tc_node_start_shared_progress(tc_node_t* node) {
  TC_NOT_NULL(node);
  return guarded([&] { return node->progress.start(tc::capi::Progress::Waiters::poll); });
}

tc_status_t tc_node_stop_progress(tc_node_t* node) {
  TC_NOT_NULL(node);
  return guarded([&] { return node->progress.stop(); });
}

tc_status_t tc_node_report(tc_node_t* node, char* text, size_t capacity, size_t* size) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(size);
  if (capacity != 0) TC_NOT_NULL(text);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*node);
    const auto lines = tc::node::lines_of(node->node->report());
    *size = lines.size();
    if (lines.size() > capacity)
      return tc::fail(TC_ERR_LIMIT, "the report has {} bytes when {} are given", lines.size(), capacity);
    std::memcpy(text, lines.data(), lines.size());
    return {};
  });
}

tc_status_t tc_node_stat(tc_node_t* node, const char* name, uint64_t* value) {
  TC_NOT_NULL(node);
  TC_NOT_NULL(name);
  TC_NOT_NULL(value);
  return guarded([&]() -> tc::Status {
    const auto entry = enter(*node);
    TC_ASSIGN(*value, node->node->stat(name));
    return {};
  });
}

size_t tc_statistic_count(void) { return tc::node::statistics().size(); }

const tc_statistic_t* tc_statistic_at(size_t index) {
  const auto statistics = tc::node::statistics();
  return index < statistics.size() ? reinterpret_cast<const tc_statistic_t*>(&statistics[index]) : nullptr;
}

const char* tc_statistic_name(const tc_statistic_t* statistic) {
  return statistic != nullptr ? statistic_of(statistic).name : "";
}
const char* tc_statistic_unit(const tc_statistic_t* statistic) {
  return statistic != nullptr ? statistic_of(statistic).unit : "";
}
const char* tc_statistic_help(const tc_statistic_t* statistic) {
  return statistic != nullptr ? statistic_of(statistic).help : "";
}
int tc_statistic_is_total(const tc_statistic_t* statistic) {
  return statistic != nullptr && statistic_of(statistic).kind == tc::node::Statistic::Kind::total ? 1 : 0;
}

}  // extern "C"
