// SPDX-License-Identifier: Apache-2.0
#include "target/jit/observers.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

// The list and the function at which debuggers stop. libLLVM defines them for every JIT of the process.
extern "C" jit_descriptor __jit_debug_descriptor;
extern "C" void __jit_debug_register_code();

namespace tc::target::jit {

namespace {

// The list belongs to the process, by the debuggers' definition; so does its lock.
std::mutex& list_lock() {
  static std::mutex lock;
  return lock;
}

// Writes each section's address into its header. The object is our own or was checked by JITLink already; still
// nothing outside it is touched.
bool fill_in_addresses(Bytes& object, const std::unordered_map<std::string, uint64_t>& addresses) {
  Elf64_Ehdr header;
  if (object.size() < sizeof header) return false;
  std::memcpy(&header, object.data(), sizeof header);
  const auto read_section = [&](size_t index, Elf64_Shdr& section) {
    const auto offset = header.e_shoff + index * sizeof section;
    if (header.e_shoff > object.size() || offset + sizeof section > object.size()) return false;
    std::memcpy(&section, object.data() + offset, sizeof section);
    return true;
  };
  Elf64_Shdr names;
  if (!read_section(header.e_shstrndx, names)) return false;
  if (names.sh_offset > object.size() || names.sh_size > object.size() - names.sh_offset) return false;
  const auto text = as_text(ByteView(object).subspan(names.sh_offset, names.sh_size));
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read_section(i, section) || section.sh_name >= text.size()) return false;
    const auto name = text.substr(section.sh_name, text.find('\0', section.sh_name) - section.sh_name);
    const auto found = addresses.find(std::string(name));
    if (found == addresses.end()) continue;
    section.sh_addr = found->second;
    std::memcpy(object.data() + header.e_shoff + i * sizeof section, &section, sizeof section);
  }
  return true;
}

class Entry final : public DebuggerEntry {
 public:
  explicit Entry(Bytes object) : object_(std::move(object)) {
    entry_.symfile_addr = reinterpret_cast<const char*>(object_.data());
    entry_.symfile_size = object_.size();
    const std::lock_guard lock(list_lock());
    entry_.prev_entry = nullptr;
    entry_.next_entry = __jit_debug_descriptor.first_entry;
    if (entry_.next_entry) entry_.next_entry->prev_entry = &entry_;
    __jit_debug_descriptor.first_entry = &entry_;
    announce(JIT_REGISTER_FN);
  }

  ~Entry() override {
    const std::lock_guard lock(list_lock());
    if (entry_.prev_entry) entry_.prev_entry->next_entry = entry_.next_entry;
    if (entry_.next_entry) entry_.next_entry->prev_entry = entry_.prev_entry;
    if (__jit_debug_descriptor.first_entry == &entry_) __jit_debug_descriptor.first_entry = entry_.next_entry;
    announce(JIT_UNREGISTER_FN);
  }

 private:
  void announce(jit_actions_t action) {
    __jit_debug_descriptor.relevant_entry = &entry_;
    __jit_debug_descriptor.action_flag = static_cast<uint32_t>(action);
    __jit_debug_register_code();
  }

  Bytes object_;
  jit_code_entry entry_{};
};

}  // namespace

std::unique_ptr<DebuggerEntry> DebuggerEntry::add(ByteView object,
                                                  const std::unordered_map<std::string, uint64_t>& addresses) {
  Bytes copy(object.begin(), object.end());
  if (!fill_in_addresses(copy, addresses)) return nullptr;
  return std::make_unique<Entry>(std::move(copy));
}

void add_to_perf_map(uint64_t address, uint64_t size, std::string_view label, std::string_view function) {
  const auto path = fmt::format("/tmp/perf-{}.map", ::getpid());
  // Every user can write to that directory, so symbolic links are not followed.
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  const auto line = fmt::format("{:x} {:x} {}:{}\n", address, size, label, function);
  // One write is one line, also when threads append at the same time.
  [[maybe_unused]] const auto written = ::write(file, line.data(), line.size());
  ::close(file);
}

}  // namespace tc::target::jit
