// SPDX-License-Identifier: Apache-2.0
//
// What a node's file in a rendezvous directory says: one line, for people too.
//
//     threechains-node 2 w 3 of 8 on HOST at 10.0.0.4:41234 key ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo
//
// 2 is the version of this format. `w` says that the node still waits for others, `i` that it is informed of all. The key
// is the public one, by which the node proves on connections that it is this one.
//
// Thread: any; plain values.
#pragma once

#include <string>

#include "base/result.h"
#include "trust/key_pair.h"

namespace tc::node::bootstrap {

struct Record {
  bool informed = false;
  uint32_t id = 0;
  uint32_t count = 0;
  std::string host;
  std::string address;
  trust::PublicKey key;
};

inline constexpr size_t max_record_bytes = 1024;
inline constexpr size_t informed_offset = 19;  // where the file's `w` becomes `i`
inline constexpr char informed_mark = 'i';

std::string encode(const Record& record);
// TC_ERR_MALFORMED, TC_ERR_VERSION.
Result<Record> decode(std::string_view text);

// This host's name, in a form that a record can hold.
std::string host_name();

}  // namespace tc::node::bootstrap
