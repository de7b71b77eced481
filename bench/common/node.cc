// SPDX-License-Identifier: Apache-2.0
#include "common/node.h"

#include <memory>

#include "base/clock.h"

namespace tc::bench {

namespace {

struct FreeConfig {
  void operator()(tc_config_t* config) const { tc_config_free(config); }
};

}  // namespace

Status check(tc_status_t status, const char* what) {
  if (status == TC_OK) return {};
  return fail(status, "{}: {}", what, tc_error_message());
}

Result<tc_node_t*> make_node(const BenchTransport& transport, NodeSettings settings) {
  for (auto& setting : transport.node_settings()) settings.push_back(std::move(setting));
  return make_node(settings);
}

Result<tc_node_t*> make_node(const NodeSettings& settings) {
  tc_config_t* raw = nullptr;
  TC_CHECK(check(tc_config_create(&raw), "tc_config_create"));
  const std::unique_ptr<tc_config_t, FreeConfig> config(raw);
  for (const auto& [key, value] : settings) TC_CHECK(check(tc_config_set(raw, key, value.c_str()), key));
  tc_node_t* node = nullptr;
  TC_CHECK(check(tc_node_create(raw, &node), "tc_node_create"));
  return node;
}

Status wait_until_tuned(tc_node_t* node) {
  const auto deadline = Deadline::after_ms(30'000);
  uint64_t codes = 0, tuned = 0;
  do {
    TC_CHECK(check(tc_node_wait(node, 1, nullptr), "tc_node_wait"));
    TC_CHECK(check(tc_node_stat(node, "codes", &codes), "tc_node_stat"));
    TC_CHECK(check(tc_node_stat(node, "tuned", &tuned), "tc_node_stat"));
    if (tuned >= codes) return {};
  } while (!deadline.passed());
  return fail(TC_ERR_TIMEOUT, "{} of {} ifuncs are compiled for this CPU after 30 s", tuned, codes);
}

std::string element(const std::string& list, uint32_t index) {
  size_t begin = 0;
  while (index-- > 0) begin = list.find(',', begin) + 1;
  return list.substr(begin, list.find(',', begin) - begin);
}

}  // namespace tc::bench
