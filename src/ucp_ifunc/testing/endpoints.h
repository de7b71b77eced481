// SPDX-License-Identifier: Apache-2.0
//
// For tests: contexts of one process with real UCX, and the ways between them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <threechains/ucp_ifunc.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

namespace tc::ucp_testing {

using ::testing::HasSubstr;

struct Result {
  unsigned long sum = 0, calls = 0, payload_size = 0, payload_address = 0;
  char first = 0;
};

inline ucp_ifunc_reg_param_t named(const char* name) { return {const_cast<char*>(name), 0, 1}; }

// A context with a worker and memory that UCX allocated.
class Party {
 public:
  explicit Party(size_t size = 1 << 16) : size(size) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM;
    ucp_worker_params_t worker_params{};
    ucp_mem_map_params_t map{};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    map.length = size;
    map.flags = UCP_MEM_MAP_ALLOCATE;
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    if (ucp_init(&params, nullptr, &context) != UCS_OK ||
        ucp_worker_create(context, &worker_params, &worker) != UCS_OK ||
        ucp_mem_map(context, &map, &mapped) != UCS_OK || ucp_mem_query(mapped, &attributes) != UCS_OK)
      std::abort();
    memory = static_cast<char*>(attributes.address);
    std::memset(memory, 17, size);
  }
  ~Party() {
    ucp_mem_unmap(context, mapped);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
  }

  ucs_status_t poll(void* args, size_t at = 0, size_t room = 1 << 14) {
    return ucp_poll_ifunc(context, memory + at, room, args, worker);
  }
  // Polls until something other than "nothing yet" comes.
  ucs_status_t poll_until(void* args) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (unsigned polls = 1; polls % 1024 != 0 || std::chrono::steady_clock::now() < deadline; ++polls)
      if (const auto status = poll(args); status != UCS_ERR_NO_MESSAGE) return status;
    return UCS_ERR_TIMED_OUT;
  }

  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_mem_h mapped = nullptr;
  char* memory = nullptr;
  const size_t size;
};

class Road {
 public:
  Road(Party& from, Party& to) : from_(from), to_(to) {
    ucp_address_t* address = nullptr;
    size_t address_size = 0;
    ucp_worker_get_address(to.worker, &address, &address_size);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = address;
    void* packed = nullptr;
    size_t packed_size = 0;
    if (ucp_ep_create(from.worker, &params, &ep) != UCS_OK ||
        ucp_rkey_pack(to.context, to.mapped, &packed, &packed_size) != UCS_OK ||
        ucp_ep_rkey_unpack(ep, packed, &rkey) != UCS_OK)
      std::abort();
    ucp_rkey_buffer_release(packed);
    ucp_worker_release_address(to.worker, address);
  }
  ~Road() {
    ucp_rkey_destroy(rkey);
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    finish(ucp_ep_close_nbx(ep, &param));
  }
  void finish(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
      ucp_worker_progress(from_.worker);
      ucp_worker_progress(to_.worker);
    }
    ucp_request_free(request);
  }
  ucs_status_t send(ucp_ifunc_msg_t msg, size_t at = 0) {
    const auto status =
        ucp_ifunc_send_nbix(ep, msg, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(to_.memory + at)), rkey);
    if (status == UCS_INPROGRESS) {
      const ucp_request_param_t param{};
      finish(ucp_ep_flush_nbx(ep, &param));
      return UCS_OK;
    }
    return status;
  }

  ucp_ep_h ep = nullptr;
  ucp_rkey_h rkey = nullptr;

 private:
  Party& from_;
  Party& to_;
};

class UcpIfunc : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("UCP_IFUNC_LOG", "off", 0); }
  UcpIfunc() { use("one"); }
  static void use(const std::string& folder) {
    setenv("UCX_IFUNC_LIB_DIR", (std::string(TC_TESTDATA) + "/" + folder).c_str(), 1);
  }
  static ucp_ifunc_h registered(Party& party, const char* name) {
    ucp_ifunc_h ifunc = nullptr;
    EXPECT_EQ(ucp_register_ifunc(party.context, named(name), &ifunc), UCS_OK) << ucp_ifunc_error();
    return ifunc;
  }
  static ucp_ifunc_msg_t message(ucp_ifunc_h ifunc, std::string args = "payload") {
    ucp_ifunc_msg_t msg{};
    EXPECT_EQ(ucp_ifunc_msg_create(ifunc, args.data(), args.size(), &msg), UCS_OK) << ucp_ifunc_error();
    return msg;
  }

  Party source, target;
  Road road{source, target};
  Result result;
};

}  // namespace tc::ucp_testing
