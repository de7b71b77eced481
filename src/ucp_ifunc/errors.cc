// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/errors.h"

#include <threechains/ucp_ifunc.h>

#include <exception>
#include <new>
#include <string>

namespace tc::ucp {

namespace {

// Per thread by the contract of ucp_ifunc_error().
thread_local std::string last_error;

}  // namespace

ucs_status_t ucs_status_of(tc_status_t status) noexcept {
  switch (status) {
    case TC_OK: return UCS_OK;
    case TC_ERR_NOT_FOUND: return UCS_ERR_NO_ELEM;
    case TC_ERR_INVALID:
    case TC_ERR_MALFORMED: return UCS_ERR_INVALID_PARAM;
    case TC_ERR_TOO_LARGE: return UCS_ERR_BUFFER_TOO_SMALL;
    case TC_ERR_LIMIT: return UCS_ERR_EXCEEDS_LIMIT;
    case TC_ERR_VERSION:
    case TC_ERR_UNRESOLVED:
    case TC_ERR_NO_SLICE:
    case TC_ERR_COMPILE:
    case TC_ERR_UNSUPPORTED: return UCS_ERR_UNSUPPORTED;
    case TC_ERR_DENIED: return UCS_ERR_REJECTED;
    case TC_ERR_IFUNC: return UCS_ERR_CANCELED;
    case TC_ERR_TIMEOUT: return UCS_ERR_TIMED_OUT;
    case TC_ERR_BUSY: return UCS_ERR_BUSY;
    case TC_ERR_NO_MEMORY: return UCS_ERR_NO_MEMORY;
    default: return UCS_ERR_IO_ERROR;
  }
}

ucs_status_t report(const Error& error) noexcept {
  try {
    last_error = error.message;
  } catch (...) {
    last_error.clear();
  }
  return ucs_status_of(error.code);
}

ucs_status_t report_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return report({TC_ERR_NO_MEMORY, "out of memory"});
  } catch (const std::exception& error) {
    return report({TC_ERR_INTERNAL, error.what()});
  } catch (...) {
    return report({TC_ERR_INTERNAL, "an exception of an unknown kind"});
  }
}

ucs_status_t report_no_message() noexcept {
  return report({TC_ERR_INVALID, "a message without a frame: it comes from ucp_ifunc_msg_create()"});
}

}  // namespace tc::ucp

extern "C" const char* ucp_ifunc_error(void) { return tc::ucp::last_error.c_str(); }
