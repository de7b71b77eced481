// SPDX-License-Identifier: Apache-2.0
#include "node/link/call_front.h"

#include <algorithm>

namespace tc::node {

CallFront read_call_front(const wire::Header& frame, ByteView body) {
  const bool is_call = frame.kind == wire::Kind::call || frame.kind == wire::Kind::call_code;
  if (!is_call || (frame.flags & wire::flag_call_header) == 0 || body.size() < wire::call_header_bytes) return {};
  const auto front = body.first(std::min(body.size(), wire::call_header_bytes + wire::max_return_address_bytes));
  const Bytes copy(front.begin(), front.end());
  CallFront found;
  found.header = wire::read_call_header(copy.data());
  if ((frame.flags & wire::flag_return_address) == 0) return found;
  size_t size = 0;
  if (auto address = wire::decode_return_address(ByteView(copy).subspan(wire::call_header_bytes), size))
    found.return_address = std::move(*address);
  else
    found.header.reset();
  return found;
}

}  // namespace tc::node
