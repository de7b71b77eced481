// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/exports.h"

#include <threechains/ucp_ifunc.h>

namespace tc::ucp {

// By address, not by name: the library may have been opened where dlsym does not look.
void export_api(target::Policy& policy) {
#define TC_EXPORT(function) policy.export_symbol(#function, reinterpret_cast<void*>(&function))
  TC_EXPORT(ucp_register_ifunc);
  TC_EXPORT(ucp_register_ifunc_im);
  TC_EXPORT(ucp_deregister_ifunc);
  TC_EXPORT(ucp_ifunc_msg_create);
  TC_EXPORT(ucp_ifunc_msg_get_payload_ptr);
  TC_EXPORT(ucp_ifunc_msg_free);
  TC_EXPORT(ucp_ifunc_send_nbix);
  TC_EXPORT(ucp_ifunc_forget);
  TC_EXPORT(ucp_poll_ifunc);
  TC_EXPORT(ucp_ifunc_am_register);
  TC_EXPORT(ucp_ifunc_am_send_nbx);
  TC_EXPORT(ucp_ifunc_error);
  TC_EXPORT(ucp_ifunc_stat);
  TC_EXPORT(ucp_ifunc_release);
  TC_EXPORT(ucp_ifunc_note_worker);
  TC_EXPORT(ucp_ifunc_forget_worker);
  TC_EXPORT(ucp_ifunc_2021_register);
  TC_EXPORT(ucp_ifunc_2021_poll);
#undef TC_EXPORT
}

}  // namespace tc::ucp
