// SPDX-License-Identifier: Apache-2.0
#include "target/jit/linker.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/SymbolStringPool.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "target/jit/frame_check.h"
#include "target/jit/link_memory.h"
#include "target/jit/llvm_errors.h"
#include "target/jit/object_check.h"
#include "target/jit/observers.h"

// The unwinder's own interface (libgcc_s, and LLVM's libunwind as well); it has no header.
extern "C" void __register_frame(void* frames);
extern "C" void __deregister_frame(void* frames);

namespace tc::target::jit {

namespace {

namespace jitlink = llvm::jitlink;

constexpr const char* frame_table = ".eh_frame";

// Lets exceptions pass through linked code: tells the unwinder of this process where its frame table is. Withdrawn when
// destroyed, which must be before the table's memory goes.
class UnwindRegistration {
 public:
  UnwindRegistration() = default;
  // `frames` is the start of an .eh_frame section that ends with a zero word.
  explicit UnwindRegistration(void* frames) noexcept : frames_(frames) { __register_frame(frames); }
  ~UnwindRegistration() {
    if (frames_ != nullptr) __deregister_frame(frames_);
  }
  UnwindRegistration(UnwindRegistration&& other) noexcept : frames_(std::exchange(other.frames_, nullptr)) {}
  UnwindRegistration& operator=(UnwindRegistration&& other) noexcept {
    std::swap(frames_, other.frames_);
    return *this;
  }

 private:
  void* frames_ = nullptr;
};

class Image final : public LinkedCode {
 public:
  void* symbol(const std::string& name) const noexcept override {
    const auto found = symbols.find(name);
    return found == symbols.end() ? nullptr : found->second;
  }
  size_t bytes() const noexcept override { return memory.placement().bytes + memory.placement().data_bytes; }
  void* frames() const noexcept override { return foreign_frames; }

  bool holds(uintptr_t address) const noexcept override { return address - text() < memory.placement().bytes; }
  // Functions that cannot be seen from outside have no symbol here.
  CodePlace place_of(uintptr_t address) const noexcept override {
    CodePlace place{{}, address - text()};
    for (const auto& [name, start] : symbols)
      if (const auto offset = address - reinterpret_cast<uintptr_t>(start); offset <= place.offset)
        place = {name, offset};
    return place;
  }

  // In this order: what describes the memory is withdrawn before the memory goes.
  Allocation memory;
  std::unordered_map<std::string, void*> symbols;
  UnwindRegistration unwind;
  void* foreign_frames = nullptr;
  std::unique_ptr<DebuggerEntry> debugger;

 private:
  uintptr_t text() const noexcept { return reinterpret_cast<uintptr_t>(memory.placement().text); }
};

// What one link needs and what comes of it. JITLink calls back on this thread, before link() returns.
struct Job {
  Job(ByteView object, const std::string& label, const SymbolResolver& resolve, const Variables& variables,
      const LinkerOptions& options, CodeArena& code_memory)
      : object(object), label(label), resolve(resolve), variables(variables), options(options), memory(code_memory) {}

  const ByteView object;
  const std::string& label;
  const SymbolResolver& resolve;
  const Variables& variables;
  const LinkerOptions& options;
  LinkMemory memory;
  std::unique_ptr<Image> image = std::make_unique<Image>();
  std::unordered_map<std::string, uint64_t> section_addresses;  // for debuggers
  std::span<const std::byte> frames;                            // the frame table; empty: the code has none
  std::optional<Error> error;                                   // the first one, ours before JITLink's
};

class Context final : public jitlink::JITLinkContext {
 public:
  explicit Context(Job& job) : JITLinkContext(nullptr), job_(job) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return job_.memory; }

  void notifyFailed(llvm::Error error) override {
    auto words = llvm::toString(std::move(error));
    if (job_.error) return;
    if (job_.memory.error()) {
      job_.error = *job_.memory.error();
    } else {
      job_.error = Error{TC_ERR_COMPILE, "cannot link: " + words};
    }
  }

  void lookup(const LookupMap& symbols, std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> then) override {
    auto addresses = look_up(symbols);
    if (addresses) {
      then->run(std::move(*addresses));
    } else {
      job_.error = std::move(addresses).error();
      then->run(llvm::createStringError("unresolved"));
    }
  }

  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    collect_symbols(graph);
    if (const auto* const section = graph.findSectionByName(frame_table); section != nullptr) {
      if (section->getMemProt() != llvm::orc::MemProt::Read)
        return refuse("the object's frame table can be written or executed");
      const jitlink::SectionRange range(*section);
      job_.frames = {range.getStart().toPtr<const std::byte*>(), range.getSize()};
    }
    if (job_.options.debugger) {
      for (auto& section : graph.sections())
        if (!section.blocks().empty())
          job_.section_addresses[section.getName().str()] = jitlink::SectionRange(section).getStart().getValue();
    }
    return llvm::Error::success();
  }

  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override {
    (void)allocation.release();  // a token only: the memory is taken from LinkMemory
  }

 private:
  llvm::Error refuse(const char* why) {
    job_.error = Error{TC_ERR_COMPILE, why};
    return llvm::createStringError(why);
  }

  // In the order of their names, so that the same ifunc always fails with the same message.
  Result<jitlink::AsyncLookupResult> look_up(const LookupMap& symbols) {
    std::vector<std::pair<llvm::orc::SymbolStringPtr, jitlink::SymbolLookupFlags>> wanted(symbols.begin(),
                                                                                          symbols.end());
    std::sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return *a.first < *b.first; });
    jitlink::AsyncLookupResult addresses;
    for (const auto& [name, flags] : wanted) {
      auto address = look_up((*name).str());
      if (address) {
        addresses[name] = {llvm::orc::ExecutorAddr::fromPtr(*address), llvm::JITSymbolFlags::Exported};
      } else if (address.error().code != TC_ERR_UNRESOLVED ||
                 flags != jitlink::SymbolLookupFlags::WeaklyReferencedSymbol) {
        return fail(std::move(address).error());
      }
    }
    return addresses;
  }

  Result<void*> look_up(const std::string& name) {
    if (const auto found = job_.variables.find(name); found != job_.variables.end()) return found->second;
    return job_.resolve(name);
  }

  void collect_symbols(jitlink::LinkGraph& graph) {
    for (auto* symbol : graph.defined_symbols()) {
      if (!symbol->hasName()) continue;
      const std::string name = (*symbol->getName()).str();
      if (symbol->getScope() != jitlink::Scope::Local)
        job_.image->symbols.emplace(name, symbol->getAddress().toPtr<void*>());
      if (job_.options.perf && symbol->isCallable())
        add_to_perf_map(symbol->getAddress().getValue(), symbol->getSize(), job_.label, name);
    }
  }

  Job& job_;
};

using Names = std::shared_ptr<llvm::orc::SymbolStringPool>;

Result<std::unique_ptr<jitlink::LinkGraph>> read_object(ByteView object, const std::string& label, Names names) {
  const auto text = as_text(object);
  const llvm::MemoryBufferRef buffer(llvm::StringRef(text.data(), text.size()), label);
  TC_CHECK(check_symbols(buffer));
  auto graph = jitlink::createLinkGraphFromObject(buffer, std::move(names));
  if (!graph) return compile_error("LLVM cannot read the object", graph.takeError());
  return std::move(*graph);
}

}  // namespace

Result<std::unique_ptr<LinkedCode>> Linker::link(ByteView object, const std::string& label,
                                                 const SymbolResolver& resolve, const Variables& variables,
                                                 memory::Arena* exported) {
  static const llvm::Triple host(llvm::sys::getProcessTriple());
  // A pool for this link alone: one for all would keep every name for ever. It must outlive jitlink::link().
  const auto names = std::make_shared<llvm::orc::SymbolStringPool>();
  Bytes changed;
  if (!variables.empty()) {
    TC_ASSIGN(changed, without_definitions(object, variables));
    object = changed;
  }
  TC_ASSIGN(auto graph, read_object(object, label, names));
  TC_CHECK(check_graph(*graph, host));
  const auto code_memory = exported != nullptr ? CodeArena::around(*exported) : memory_;
  // What looks into this process, or belongs to it, must not find code that runs in another.
  const auto observers = exported != nullptr ? LinkerOptions{} : options_;
  Job job(object, label, resolve, variables, observers, *code_memory);
  jitlink::link(std::move(graph), std::make_unique<Context>(job));
  if (job.error) return fail(std::move(*job.error));
  job.image->memory = job.memory.take();
  if (!job.frames.empty()) {
    const auto& placement = job.image->memory.placement();
    TC_CHECK(check_frames(job.frames, {placement.text, placement.bytes}));
    auto* const frames = const_cast<std::byte*>(job.frames.data());
    if (exported != nullptr)
      job.image->foreign_frames = frames;
    else
      job.image->unwind = UnwindRegistration(frames);
  }
  if (observers.debugger) job.image->debugger = DebuggerEntry::add(object, job.section_addresses);
  return std::move(job.image);
}

}  // namespace tc::target::jit
