// SPDX-License-Identifier: Apache-2.0
#include "node/invocation.h"

#include <algorithm>

#include "base/log_format.h"
#include "node/authority.h"
#include "node/call_log.h"
#include "node/links.h"

namespace tc::node {

// ---- Data

void Invocation::expose(std::string name, void* data, size_t size, SharedFile file) {
  auto changed = *data_;
  std::erase_if(changed, [&](const auto& exposed) { return exposed->name == name; });
  if (data != nullptr)
    changed.push_back(std::make_shared<const ExposedData>(std::move(name), data, size, std::move(file)));
  data_ = std::make_shared<const NamedData>(std::move(changed));
}

void* Invocation::data(std::string_view name, size_t* size) noexcept {
  const auto* const exposed = find(*data_, name).get();
  if (exposed == nullptr) return nullptr;
  const auto& rights = running_rights();
  if (!rights->is_all() && !may_touch({executor_.running(), rights}, name)) [[unlikely]]
    return nullptr;
  if (size != nullptr) *size = exposed->size;
  return exposed->data;
}

const trust::SharedRights& Invocation::running_rights() const {
  const auto& call = executor_.running();
  if (call.link == nullptr) return local_.running_rights();
  return link_of(call)->receiver().rights_of(call.code.get());
}

// A key with the right to read gets the same pointer: only a cell could keep code in this process from writing.
bool Invocation::may_touch(const CallEffects::Asker& asker, std::string_view data) noexcept try {
  if (asker.rights->may_read(data) || asker.rights->may_write(data)) return true;
  const auto* const code = asker.call.code.get();
  const LogContext about({.ifunc = code != nullptr ? std::string_view(code->name()) : std::string_view(),
                          .content_id = code != nullptr ? &code->id() : nullptr});
  authority_.log_denial(fmt::format("ifunc '{}'", code != nullptr ? code->name() : "?"),
                        asker.rights->may_read(data).error());
  return false;
} catch (const std::bad_alloc&) {
  return false;
}

target::IfuncHost::InProgress Invocation::in_progress() const noexcept {
  return {&executor_, caller_label(executor_.running())};
}

// ---- What the running call does to others

CallEffects::Asker Invocation::running() const { return {executor_.running(), running_rights()}; }

tc_status_t Invocation::reply(ByteView bytes) noexcept { return effects_.reply(executor_.running(), bytes); }

tc_status_t Invocation::forward(uint32_t node, ByteView payload) noexcept {
  return effects_.forward(running(), node, payload);
}

tc_status_t Invocation::forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return effects_.forward_as(running(), node, name, payload);
}

tc_status_t Invocation::inject(uint32_t node, std::string_view name, ByteView payload) noexcept {
  return effects_.inject(running(), node, name, payload);
}

void Invocation::fail(int32_t code, std::string_view message) noexcept {
  CallEffects::fail(executor_.running(), code, message);
}

void Invocation::log(int level, std::string_view message) noexcept {
  common_.call_log.write(executor_.running(), level, message);
}

}  // namespace tc::node
