// SPDX-License-Identifier: Apache-2.0
#include "common/get_memory.h"

namespace tc::bench {

Result<std::unique_ptr<GetServer>> GetServer::create(const std::string& tls, size_t bytes) {
  std::unique_ptr<GetServer> server(new GetServer);
  TC_ASSIGN(server->party_, UcxParty::create(tls, UCP_FEATURE_RMA));
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.length = bytes;
  params.flags = UCP_MEM_MAP_ALLOCATE;
  TC_CHECK(check_ucx(ucp_mem_map(server->party_->context(), &params, &server->mapped_), "ucp_mem_map"));
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  TC_CHECK(check_ucx(ucp_mem_query(server->mapped_, &attributes), "ucp_mem_query"));
  server->memory_ = {static_cast<std::byte*>(attributes.address), bytes};
  return server;
}

GetServer::~GetServer() {
  if (mapped_ != nullptr) ucp_mem_unmap(party_->context(), mapped_);
}

Result<std::string> GetServer::contact() const {
  void* key = nullptr;
  size_t size = 0;
  TC_CHECK(check_ucx(ucp_rkey_pack(party_->context(), mapped_, &key, &size), "ucp_rkey_pack"));
  const auto text = to_hex(key, size);
  ucp_rkey_buffer_release(key);
  TC_ASSIGN(const auto address, party_->address());
  return fmt::format("{} {} {}", address, text, reinterpret_cast<uintptr_t>(memory_.data()));
}

Result<RemoteMemory> RemoteMemory::reach(UcxParty& party, const GetContact& contact) {
  TC_ASSIGN(auto* const endpoint, party.connect(contact.worker));
  const auto key_bytes = from_hex(contact.key);
  ucp_rkey_h key = nullptr;
  TC_CHECK(check_ucx(ucp_ep_rkey_unpack(endpoint, key_bytes.data(), &key), "ucp_ep_rkey_unpack"));
  return RemoteMemory(endpoint, key, contact.address);
}

}  // namespace tc::bench
