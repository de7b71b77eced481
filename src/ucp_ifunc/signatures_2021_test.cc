// SPDX-License-Identifier: Apache-2.0
//
// The 2021 form: Listing 1.1 (and 1.4) as it is printed.
#define THREECHAINS_UCP_IFUNC_2021
#include <threechains/ucp_ifunc.h>

#include <type_traits>

namespace {

#define CALL_IS(function, ...) static_assert(std::is_same_v<decltype(function), __VA_ARGS__>)

CALL_IS(ucp_register_ifunc, ucs_status_t(ucp_context_h, const char*, ucp_ifunc_h*));
CALL_IS(ucp_deregister_ifunc, void(ucp_context_h, ucp_ifunc_h));
CALL_IS(ucp_ifunc_msg_create, ucs_status_t(ucp_ifunc_h, void*, size_t, ucp_ifunc_msg_t*));
CALL_IS(ucp_ifunc_msg_free, void(ucp_ifunc_msg_t));
CALL_IS(ucp_ifunc_msg_send_nbix, ucs_status_t(ucp_ep_h, ucp_ifunc_msg_t, uint64_t, ucp_rkey_h));
CALL_IS(ucp_ifunc_send_nbix, ucs_status_t(ucp_ep_h, ucp_ifunc_msg_t, uint64_t, ucp_rkey_h));  // as Listing 1.4 has it
CALL_IS(ucp_poll_ifunc, ucs_status_t(ucp_context_h, void*, size_t, void*));

}  // namespace
