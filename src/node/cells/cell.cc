// SPDX-License-Identifier: Apache-2.0
#include "node/cells/cell.h"

#include <algorithm>

#include "base/clock.h"
#include "node/config.h"
#include "node/identity.h"
#include "wire/abi_names.h"

namespace tc::node {

namespace {

bool is_of_every_ifunc(std::string_view symbol) noexcept {
  return std::ranges::find(abi_names::functions, symbol) != std::end(abi_names::functions) ||
         std::ranges::find(abi_names::compiler_runtime, symbol) != std::end(abi_names::compiler_runtime);
}

}  // namespace

Result<std::unique_ptr<Cell>> Cell::create(const Config& config, std::vector<std::string> libraries, DataTurn& turn) {
  std::unique_ptr<Cell> cell(new Cell(std::move(libraries), turn));
  for (const auto& library : config.allowed_libraries) cell->policy_.allow_library(library);
  TC_CHECK(cell->policy_.allow_export("*"));
  auto options = config.code;
  options.has_other_threads = true;
  TC_ASSIGN(cell->store_, target::CodeStore::create(std::move(options), cell->policy_, [](target::Code&) {}));
  return cell;
}

// The tuner's thread asks the process for symbols.
Cell::~Cell() {
  if (handed_ != nullptr) release();
  store_.reset();
}

cell::CellProcess::Options Cell::options(const Config& config, const Identity& self) const {
  const auto memory = store_->exported();
  const auto half = [&](int descriptor, size_t from) {
    return cell::CellProcess::Half{
        .descriptor = descriptor,
        .address = reinterpret_cast<void*>(memory.address + from),  // NOLINT
        .bytes = memory.half_bytes,
    };
  };
  return {
      .code = half(memory.code, 0),
      .data = half(memory.data, memory.half_bytes),
      .libraries = libraries_,
      .node_id = self.id,
      .node_count = self.count(),
      .message_bytes = config.max_message,
      .memory_bytes = config.cell_memory,
  };
}

// ---- Linking

// Libraries first: code is linked to those that are there.
std::vector<const target::Code*> Cell::to_link(const target::Code& code, const target::CodeStore& known) const {
  std::vector<const target::Code*> codes;
  const auto add = [&](const target::Code& one) {
    if (store_->find(one.id()) == nullptr) codes.push_back(&one);
  };
  if (library_changes_ != known.library_changes())
    for (const auto* library : known.libraries())
      if (library != &code) add(*library);
  add(code);
  return codes;
}

std::vector<std::string> Cell::lacking(const target::Code& code, const target::CodeStore& known) const {
  std::vector<std::string> names;
  for (const auto* one : to_link(code, known))
    for (const auto& name : one->bundle->manifest().dependencies)
      if (std::ranges::find(libraries_, name) == libraries_.end() && policy_.allows_library(name))
        names.push_back(name);
  return names;
}

bool Cell::has_gone_library(const target::CodeStore& known) const {
  if (library_changes_ == known.library_changes()) return false;
  const auto there = known.libraries();
  return std::ranges::any_of(store_->libraries(), [&](const target::Code* here) {
    return std::ranges::none_of(there, [&](const target::Code* one) { return one->name() == here->name(); });
  });
}

// Of the shared libraries that the code uses: nobody may wait for the cell while code is linked.
Status Cell::ask_for_symbols(const Bundle& bundle) {
  const auto& manifest = bundle.manifest();
  if (manifest.dependencies.empty()) return {};
  auto symbols = manifest.imports;
  symbols.emplace_back("_Unwind_Resume");  // bitcode does not name it: compilers call it where an exception passes
  for (const auto& library : manifest.dependencies)
    for (const auto& symbol : symbols) {
      if (is_of_every_ifunc(symbol)) continue;
      const std::scoped_lock lock(mutex_);
      if (symbols_.contains({library, symbol})) continue;
      TC_CHECK(process_->resolve(library, symbol));
      awaited_.emplace_back(library, symbol);
    }
  return {};
}

Status Cell::begin_linking(const target::CodeStore& known) {
  linking_.clear();
  for (const auto* code : to_link(*handed_->code, known))
    linking_.push_back({*code->bundle, code->compiled, code->assembly, code->sender});
  library_changes_ = known.library_changes();
  for (const auto& one : linking_) TC_CHECK(ask_for_symbols(one.bundle));
  return awaited_.empty() ? link_and_run() : Status();
}

// What is exported here was allowed where the node loaded it.
Status Cell::link_and_run() {
  for (auto& one : std::exchange(linking_, {})) {
    target::Sender sender;
    sender.label = one.sender;
    sender.assembly = one.assembly;
    TC_CHECK(store_->load(std::move(one.bundle), sender, std::move(one.compiled)));
  }
  return run();
}

Result<void*> Cell::find(const std::string& library, const std::string& symbol) {
  if (library.empty()) {
    if (void* const address = process_->symbol(symbol); address != nullptr) return address;
  } else if (symbol.empty()) {
    return nullptr;  // it was opened before the sandbox was shut
  } else {
    const std::scoped_lock lock(mutex_);
    if (const auto found = symbols_.find({library, symbol}); found != symbols_.end() && found->second != nullptr)
      return found->second;
  }
  return fail(TC_ERR_UNRESOLVED, "'{}' is not there in a cell", symbol);
}

// ---- Calls

Status Cell::begin(HandedCall& handed, const target::CodeStore& known) {
  handed_ = &handed;
  rights_ = handed.rights;  // the same, but the next call has probably this very decision, and is not compared
  code_ = nullptr;
  begun_ns_ = now_ns();
  const bool is_linked = library_changes_ == known.library_changes() && store_->find(handed.code->id()) != nullptr;
  auto begun = is_linked ? run() : begin_linking(known);
  if (!begun) release();
  return begun;
}

Status Cell::on_resolved(const cell::Resolved& resolved) {
  if (awaited_.empty()) return {};
  {
    const std::scoped_lock lock(mutex_);
    symbols_.insert_or_assign(std::move(awaited_.front()), reinterpret_cast<void*>(resolved.address));  // NOLINT
  }
  awaited_.pop_front();
  if (!awaited_.empty() || handed_ == nullptr) return {};
  auto runs = link_and_run();
  if (!runs) release();
  return runs;
}

HandedCall* Cell::release() noexcept {
  turn_.give_back(*this);
  awaited_data_.reset();
  auto* const handed = std::exchange(handed_, nullptr);
  if (is_retired_) retire();
  return handed;
}

void Cell::retire() noexcept {
  is_retired_ = true;
  if (handed_ == nullptr) process_->kill("it is retired");
}

// Only memory that a cell can have, too. A call that may not read it has none.
bool Cell::has_target_args(const HandedCall& handed) {
  const auto& data = target_args_of(handed);
  return data != nullptr &&
         (handed.rights->is_all() || handed.rights->may_read(data->name) || handed.rights->may_write(data->name));
}

// Code finds what is mapped without a question. So that must be what there is now.
bool Cell::may_keep_data() const noexcept { return data_table_.lock() == handed_->data && may_have_data(); }

Status Cell::run() {
  store_->housekeeping();
  code_ = store_->find(handed_->code->id());
  if (code_ == nullptr) return fail(TC_ERR_LIMIT, "a cell has no room for it beside the libraries that it uses");
  const auto entry = code_->entry.load();
  // Only what a library throws can pass through code.
  void* const frames =
      handed_->code->bundle->manifest().dependencies.empty() ? nullptr : store_->frames_of(*code_, entry);
  const bool forgets_data = !mapped_.empty() && !may_keep_data();
  if (forgets_data) mapped_.clear();
  if (!mapped_.empty() && !is_concurrent()) turn_.take(*this);
  data_table_ = handed_->data;
  return process_->run({
      .entry = reinterpret_cast<uint64_t>(entry),
      .alignment = uint32_t{1} << code_->alignment_log2,
      .wants_reply = handed_->call.wants_reply,
      .forgets_data = forgets_data,
      .has_target_args = has_target_args(*handed_),
      .frames = reinterpret_cast<uint64_t>(frames),
      .payload = {handed_->payload, handed_->size},
  });
}

// ---- Data

std::string Cell::take_awaited_data() noexcept {
  begun_ns_ = now_ns();
  return *std::exchange(awaited_data_, std::nullopt);
}

Status Cell::map_data(const std::shared_ptr<const ExposedData>& data, const std::string& name, bool writable) {
  const auto same = [&](const Mapped& one) {
    return one.data.lock() == data && one.name == name && one.writable == writable;
  };
  if (std::ranges::any_of(mapped_, same)) return {};
  if (!data->file)
    return fail(TC_ERR_UNSUPPORTED, "data '{}' is memory of this process alone, and no file that a cell could map",
                data->name);
  TC_CHECK(process_->map_data(name, data->file.descriptor(), data->size, writable));
  std::erase_if(mapped_, [&](const Mapped& one) { return one.name == name; });
  mapped_.push_back({data, name, writable});
  if (!is_concurrent()) turn_.take(*this);
  return {};
}

}  // namespace tc::node
