// SPDX-License-Identifier: Apache-2.0
//
// Where our errors become UCX's statuses, and where exceptions stop.
//
// Thread: any.
#pragma once

#include <ucp/api/ucp_def.h>
#include <ucs/type/status.h>

#include "base/result.h"

namespace tc::ucp {

ucs_status_t ucs_status_of(tc_status_t status) noexcept;

// Keeps the sentence for ucp_ifunc_error() and gives the status.
ucs_status_t report(const Error& error) noexcept;
ucs_status_t report_exception() noexcept;
// A message that ucp_ifunc_msg_create() did not make.
ucs_status_t report_no_message() noexcept;

// Runs a body that gives Status or a ucs_status_t, and lets nothing escape from it.
template <class F>
ucs_status_t guarded(F body) noexcept {
  try {
    return body();
  } catch (...) {
    return report_exception();
  }
}

}  // namespace tc::ucp
