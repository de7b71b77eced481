// SPDX-License-Identifier: Apache-2.0
//
// The types of the 2022 form, one by one: programs of then were compiled against exactly these.
#include <threechains/ucp_ifunc.h>

#include <cstddef>
#include <type_traits>

namespace {

template <class Type>
using Pointee = std::remove_pointer_t<Type>;
template <class Type, class = void>
struct IsComplete : std::false_type {};
template <class Type>
struct IsComplete<Type, std::void_t<decltype(sizeof(Type))>> : std::true_type {};

static_assert(std::is_pointer_v<ucp_ifunc_h> && !IsComplete<Pointee<ucp_ifunc_h>>::value, "an opaque pointer");

#define FIELD_IS(structure, field, type) static_assert(std::is_same_v<decltype(structure::field), type>)

FIELD_IS(ucp_ifunc_msg_t, ifunc_h, ucp_ifunc_h);
FIELD_IS(ucp_ifunc_msg_t, frame, void*);
FIELD_IS(ucp_ifunc_msg_t, frame_size, size_t);
static_assert(std::is_aggregate_v<ucp_ifunc_msg_t> && sizeof(ucp_ifunc_msg_t) == 3 * sizeof(void*));
static_assert(offsetof(ucp_ifunc_msg_t, ifunc_h) < offsetof(ucp_ifunc_msg_t, frame) &&
              offsetof(ucp_ifunc_msg_t, frame) < offsetof(ucp_ifunc_msg_t, frame_size));

FIELD_IS(ucp_ifunc_reg_param_t, name, char*);
FIELD_IS(ucp_ifunc_reg_param_t, pure, int);
FIELD_IS(ucp_ifunc_reg_param_t, llvm_bc, int);
static_assert(offsetof(ucp_ifunc_reg_param_t, name) < offsetof(ucp_ifunc_reg_param_t, pure) &&
              offsetof(ucp_ifunc_reg_param_t, pure) < offsetof(ucp_ifunc_reg_param_t, llvm_bc));

FIELD_IS(ucp_llvm_bc_t, triple, char*);
FIELD_IS(ucp_llvm_bc_t, bc, void*);
FIELD_IS(ucp_llvm_bc_t, size, uint32_t);
static_assert(offsetof(ucp_llvm_bc_t, triple) < offsetof(ucp_llvm_bc_t, bc) &&
              offsetof(ucp_llvm_bc_t, bc) < offsetof(ucp_llvm_bc_t, size));

#define CALL_IS(function, ...) static_assert(std::is_same_v<decltype(function), __VA_ARGS__>)

CALL_IS(ucp_register_ifunc, ucs_status_t(ucp_context_h, ucp_ifunc_reg_param_t, ucp_ifunc_h*));
CALL_IS(ucp_deregister_ifunc, void(ucp_context_h, ucp_ifunc_h));
CALL_IS(ucp_ifunc_msg_create, ucs_status_t(ucp_ifunc_h, void*, size_t, ucp_ifunc_msg_t*));
CALL_IS(ucp_ifunc_msg_get_payload_ptr, ucs_status_t(ucp_ifunc_msg_t*, void**, size_t*));
CALL_IS(ucp_ifunc_msg_free, void(ucp_ifunc_msg_t));
CALL_IS(ucp_ifunc_send_nbix, ucs_status_t(ucp_ep_h, ucp_ifunc_msg_t, uint64_t, ucp_rkey_h));
CALL_IS(ucp_poll_ifunc, ucs_status_t(ucp_context_h, void*, size_t, void*, ucp_worker_h));
CALL_IS(ucp_register_ifunc_im,
        ucs_status_t(ucp_context_h, ucp_ifunc_reg_param_t, ucp_llvm_bc_t*, int, char**, int, ucp_ifunc_h*));

}  // namespace
