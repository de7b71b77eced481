// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <system_error>

namespace tc {

std::string_view status_name(tc_status_t code) noexcept {
  switch (code) {
    case TC_OK: return "ok";
    case TC_ERR_INVALID: return "invalid argument";
    case TC_ERR_NOT_FOUND: return "not found";
    case TC_ERR_MALFORMED: return "malformed";
    case TC_ERR_VERSION: return "version mismatch";
    case TC_ERR_TOO_LARGE: return "too large";
    case TC_ERR_DENIED: return "denied by policy";
    case TC_ERR_UNRESOLVED: return "unresolved";
    case TC_ERR_NO_SLICE: return "no slice";
    case TC_ERR_COMPILE: return "compile error";
    case TC_ERR_TIMEOUT: return "timeout";
    case TC_ERR_DISCONNECTED: return "disconnected";
    case TC_ERR_BUSY: return "busy";
    case TC_ERR_IFUNC: return "ifunc failed";
    case TC_ERR_LIMIT: return "limit reached";
    case TC_ERR_NO_MEMORY: return "out of memory";
    case TC_ERR_IO: return "input/output error";
    case TC_ERR_UNSUPPORTED: return "unsupported";
    case TC_ERR_CLOSED: return "closed";
    case TC_ERR_INTERNAL: return "internal error";
    case TC_ERR_CRASHED: return "crashed";
    case TC_ERR_CANCELED: return "canceled";
  }
  return "unknown status";
}

tc_status_t status_from_wire(uint32_t value) noexcept {
  return value <= TC_ERR_CANCELED ? static_cast<tc_status_t>(value) : TC_ERR_INTERNAL;
}

std::string system_words(int error) { return std::system_category().message(error); }

}  // namespace tc
