// SPDX-License-Identifier: Apache-2.0
#include "cell/crash_record.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace tc::cell {

namespace {

constexpr size_t record_bytes = 4096;
static_assert(sizeof(CrashRecord) <= record_bytes);

}  // namespace

Result<CrashMemory> CrashMemory::create() {
  Fd descriptor(::memfd_create("threechains-crash", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor) return fail(TC_ERR_IO, "creating memory for a crash record: {}", system_words(errno));
  if (::ftruncate(descriptor.get(), record_bytes) != 0 ||
      ::fcntl(descriptor.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(TC_ERR_NO_MEMORY, "{} bytes for a crash record: {}", record_bytes, system_words(errno));
  return map(std::move(descriptor));
}

Result<CrashMemory> CrashMemory::adopt(Fd descriptor) { return map(std::move(descriptor)); }

Result<CrashMemory> CrashMemory::map(Fd descriptor) {
  void* const memory = ::mmap(nullptr, record_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (memory == MAP_FAILED) return fail(TC_ERR_NO_MEMORY, "mapping a crash record: {}", system_words(errno));
  CrashMemory made;
  made.descriptor_ = std::move(descriptor);
  made.record_ = static_cast<CrashRecord*>(memory);
  return made;
}

CrashMemory::~CrashMemory() {
  if (record_ != nullptr) ::munmap(record_, record_bytes);
}

std::optional<Crash> CrashMemory::read() const {
  if (record_ == nullptr || std::atomic_ref(record_->is_complete).load(std::memory_order_acquire) != 1) return {};
  CrashRecord copy;
  std::memcpy(&copy, record_, sizeof copy);
  if (copy.signal <= 0 || copy.signal >= NSIG) return {};
  Crash crash{.signal = copy.signal, .code = copy.code, .address = copy.address, .pc = copy.pc};
  if (copy.signal == SIGSYS) crash.system_call = copy.system_call;
  const size_t frames = std::min<size_t>(copy.frame_count, CrashRecord::most_frames);
  crash.frames.assign(copy.frames, copy.frames + frames);
  return crash;
}

}  // namespace tc::cell
