// SPDX-License-Identifier: Apache-2.0
#include "capi/handles.h"

#define TC_AS_TEXT_(number) #number
#define TC_AS_TEXT(number) TC_AS_TEXT_(number)

namespace {

// One for each thread, as tc_error_message() promises.
thread_local std::string last_error;

}  // namespace

namespace tc::capi {

tc_status_t report(tc_status_t status, const char* sentence) noexcept {
  try {
    last_error = sentence;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

tc_status_t report(const Error& error) noexcept { return report(error.code, error.message.c_str()); }

tc_status_t report_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return report(TC_ERR_NO_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return report(TC_ERR_INTERNAL, error.what());
  } catch (...) {
    return report(TC_ERR_INTERNAL, "an exception of an unknown kind");
  }
}

}  // namespace tc::capi

extern "C" {

const char* tc_error_message(void) { return last_error.c_str(); }

const char* tc_status_name(tc_status_t status) { return tc::status_name(status).data(); }

const char* tc_version(void) {
  return TC_AS_TEXT(TC_VERSION_MAJOR) "." TC_AS_TEXT(TC_VERSION_MINOR) "." TC_AS_TEXT(TC_VERSION_PATCH);
}

}  // extern "C"
