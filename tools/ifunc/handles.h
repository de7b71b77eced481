// SPDX-License-Identifier: Apache-2.0
//
// Owners for the C API's handles, and its errors as ours.
#pragma once

#include <threechains/threechains.h>

#include <memory>

#include "base/result.h"

namespace tc::command {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* handle) const noexcept {
    Free(handle);
  }
};

using Config = std::unique_ptr<tc_config_t, Freer<tc_config_free>>;
using Node = std::unique_ptr<tc_node_t, Freer<tc_node_destroy>>;
using Message = std::unique_ptr<tc_message_t, Freer<tc_message_free>>;
using Future = std::unique_ptr<tc_future_t, Freer<tc_future_free>>;

// What the library said about its last call of this thread.
inline Status checked(tc_status_t status) {
  if (status == TC_OK) return {};
  return fail(status, "{}", tc_error_message());
}

// Does not stop at the first option that is refused, but remembers it: check `status` once at the end.
class ConfigBuilder {
 public:
  ConfigBuilder() {
    tc_config_t* config = nullptr;
    status_ = checked(tc_config_create(&config));
    config_.reset(config);
  }
  ConfigBuilder& set(const char* key, const std::string& value) {
    if (status_) status_ = checked(tc_config_set(config_.get(), key, value.c_str()));
    return *this;
  }
  Result<Node> create() {
    TC_CHECK(status_);
    tc_node_t* node = nullptr;
    TC_CHECK(checked(tc_node_create(config_.get(), &node)));
    return Node(node);
  }

 private:
  Config config_;
  Status status_;
};

}  // namespace tc::command
