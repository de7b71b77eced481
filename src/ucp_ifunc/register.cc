// SPDX-License-Identifier: Apache-2.0
//
// Registering, and messages.
#include "ucp_ifunc/context.h"
#include "ucp_ifunc/errors.h"
#include "ucp_ifunc/pack.h"

namespace tc::ucp {

namespace {

ucs_status_t register_with(ucp_context_h context, const char* name, bool bitcode, const ContextState::Source& source,
                           ucp_ifunc_h* out) {
  if (out != nullptr) *out = nullptr;  // a program that checks no status deregisters nothing
  if (context == nullptr || name == nullptr || out == nullptr)
    return report({TC_ERR_INVALID, "a registration wants a context, a name and where to put the handle"});
  auto added = state_of(context).add(name, bitcode, source);
  if (!added) return report(added.error());
  *out = *added;
  return UCS_OK;
}

// The directory first: what was received has no payload functions.
Result<Bundle> find_or_received(ContextState& state, const std::string& name) {
  auto found = find_bundle(name);
  if (found || found.error().code != TC_ERR_NOT_FOUND) return found;
  auto received = state.receiver.bundle_named(name);
  if (!received) return found;
  return std::move(*received);
}

ucs_status_t register_by_name(ucp_context_h context, const char* name, bool bitcode, ucp_ifunc_h* out) noexcept {
  return guarded([&] {
    const auto source = [&] { return find_or_received(state_of(context), name); };
    return register_with(context, name, bitcode, source, out);
  });
}

Result<Bundle> pack_memory(const std::string& name, const ucp_llvm_bc_t* bcs, int n, char** deps, int n_deps) {
  if (n <= 0 || n_deps < 0 || bcs == nullptr || (deps == nullptr && n_deps > 0))
    return fail(TC_ERR_INVALID, "{} modules and {} libraries were given: there must be one module at least", n, n_deps);
  LooseBitcode loose;
  for (int i = 0; i < n; ++i) {
    if (bcs[i].bc == nullptr || bcs[i].size == 0) return fail(TC_ERR_INVALID, "module {} has no bitcode", i);
    const auto* const bytes = static_cast<const std::byte*>(bcs[i].bc);
    loose.modules.emplace_back(bytes, bytes + bcs[i].size);
  }
  for (int i = 0; i < n_deps; ++i) {
    if (deps[i] == nullptr) return fail(TC_ERR_INVALID, "library {} has no name", i);
    loose.dependencies += std::string(deps[i]) + "\n";
  }
  return pack(name, loose);
}

}  // namespace

}  // namespace tc::ucp

extern "C" {

ucs_status_t ucp_register_ifunc(ucp_context_h context, ucp_ifunc_reg_param_t param, ucp_ifunc_h* ifunc_p) {
  return tc::ucp::register_by_name(context, param.name, param.llvm_bc != 0, ifunc_p);
}

ucs_status_t ucp_ifunc_2021_register(ucp_context_h context, const char* ifunc_name, ucp_ifunc_h* ifunc_p) {
  return tc::ucp::register_by_name(context, ifunc_name, true, ifunc_p);
}

ucs_status_t ucp_register_ifunc_im(ucp_context_h context, ucp_ifunc_reg_param_t param, ucp_llvm_bc_t* bcs, int n,
                                   char** deps, int n_deps, ucp_ifunc_h* ifunc_p) {
  return tc::ucp::guarded([&] {
    const auto source = [&] { return tc::ucp::pack_memory(param.name, bcs, n, deps, n_deps); };
    return tc::ucp::register_with(context, param.name, true, source, ifunc_p);
  });
}

void ucp_deregister_ifunc(ucp_context_h context, ucp_ifunc_h ifunc_h) {
  if (context != nullptr && ifunc_h != nullptr) tc::ucp::state_of(context).remove(*ifunc_h);
}

ucs_status_t ucp_ifunc_msg_create(ucp_ifunc_h ifunc_h, void* source_args, size_t source_args_size,
                                  ucp_ifunc_msg_t* msg_p) {
  return tc::ucp::guarded([&]() -> ucs_status_t {
    if (msg_p != nullptr) *msg_p = {};
    if (ifunc_h == nullptr || msg_p == nullptr)
      return tc::ucp::report({TC_ERR_INVALID, "a message wants a registered ifunc and where to put its handle"});
    auto message = tc::ucp::Message::create(ifunc_h->shared_from_this(), source_args, source_args_size);
    if (!message) return tc::ucp::report(message.error());
    *msg_p = {ifunc_h, (*message)->frame(), (*message)->size(true)};
    return UCS_OK;
  });
}

ucs_status_t ucp_ifunc_msg_get_payload_ptr(ucp_ifunc_msg_t* msg_p, void** payload, size_t* payload_size) {
  if (msg_p == nullptr || msg_p->frame == nullptr || payload == nullptr) return tc::ucp::report_no_message();
  auto& message = tc::ucp::Message::of(*msg_p);
  *payload = message.payload();
  if (payload_size != nullptr) *payload_size = message.payload_size();
  return UCS_OK;
}

void ucp_ifunc_msg_free(ucp_ifunc_msg_t msg) {
  if (msg.frame != nullptr) tc::ucp::Message::of(msg).destroy();
}

void ucp_ifunc_forget(ucp_ep_h ep) {
  tc::ucp::for_each_state([ep](tc::ucp::ContextState& state) { state.forget(ep); });
}

ucs_status_t ucp_ifunc_allow_export(ucp_context_h context, const char* rule) {
  return tc::ucp::guarded([&]() -> ucs_status_t {
    if (context == nullptr || rule == nullptr)
      return tc::ucp::report({TC_ERR_INVALID, "what may be exported wants a context and a rule"});
    auto set = tc::ucp::set_up_exports(tc::ucp::state_of(context).receiver.policy(), rule);
    return set ? UCS_OK : tc::ucp::report(set.error());
  });
}

ucs_status_t ucp_ifunc_stat(ucp_context_h context, const char* name, uint64_t* value) {
  return tc::ucp::guarded([&]() -> ucs_status_t {
    const auto stats = tc::ucp::state_of(context).receiver.stats();
    const std::pair<std::string_view, uint64_t> numbers[] = {{"codes", stats.codes},      {"code-bytes", stats.bytes},
                                                             {"code-loads", stats.loads}, {"rebinds", stats.rebinds},
                                                             {"retired", stats.retired},  {"tuned", stats.tuned_swaps}};
    for (const auto& [known, number] : numbers)
      if (known == name) {
        *value = number;
        return UCS_OK;
      }
    return tc::ucp::report({TC_ERR_NOT_FOUND, fmt::format("there is no number '{}'; there are: codes, code-bytes, "
                                                          "code-loads, rebinds, retired, tuned",
                                                          name)});
  });
}

void ucp_ifunc_release(ucp_context_h context) { tc::ucp::release_state(context); }

void ucp_ifunc_note_worker(ucp_context_h context, ucp_worker_h worker) {
  (void)tc::ucp::guarded([&] {
    tc::ucp::state_of(context).note_worker(worker);
    return UCS_OK;
  });
}

void ucp_ifunc_forget_worker(ucp_worker_h worker) {
  tc::ucp::for_each_state([worker](tc::ucp::ContextState& state) { state.forget_worker(worker); });
}

}  // extern "C"
