// SPDX-License-Identifier: Apache-2.0
#include "memory/code_mapping.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace tc::memory {

namespace {

std::string system_words() { return std::strerror(errno); }

std::byte* map_at(void* where, size_t size, int protection, int flags, int file) noexcept {
  void* const at = mmap(where, size, protection, flags, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

// The file may be mapped executable, but never be run as a program: some systems allow no other memfds.
int make_memfd(const char* name) noexcept {
  const int file = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (file >= 0 || errno != EINVAL) return file;
  return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);  // Linux before 6.3 does not know the flag
}

}  // namespace

Result<CodeMapping> CodeMapping::create() {
  CodeMapping mapping;
  TC_CHECK(mapping.map());
  TC_CHECK(mapping.commit(0));  // shows at once whether the system lets us execute it
  return mapping;
}

CodeMapping::CodeMapping(CodeMapping&& other) noexcept
    : memory_(std::exchange(other.memory_, -1)),
      data_memory_(std::exchange(other.data_memory_, -1)),
      code_(std::exchange(other.code_, nullptr)),
      writable_(std::exchange(other.writable_, nullptr)),
      live_(std::move(other.live_)) {}

CodeMapping::~CodeMapping() {
  if (code_ != nullptr) munmap(code_, 2 * image_half);
  if (writable_ != nullptr) munmap(writable_, image_half);
  if (memory_ >= 0) close(memory_);
  if (data_memory_ >= 0) close(data_memory_);
}

Status CodeMapping::map() {
  memory_ = make_memfd("threechains-code");
  if (memory_ < 0) return fail(TC_ERR_UNSUPPORTED, "memfd_create for code: {}", system_words());
  if (ftruncate(memory_, static_cast<off_t>(image_half)) != 0)
    return fail(TC_ERR_UNSUPPORTED, "sizing the memfd for code to {} bytes: {}", image_half, system_words());
  // Both halves in one reservation, so that their distance is what every image was linked for.
  code_ = map_at(nullptr, 2 * image_half, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (code_ == nullptr)
    return fail(TC_ERR_NO_MEMORY, "reserving {} bytes of addresses for code: {}", 2 * image_half, system_words());
  if (map_at(code_, image_half, PROT_NONE, MAP_SHARED | MAP_FIXED, memory_) == nullptr)
    return fail(TC_ERR_NO_MEMORY, "mapping {} bytes of code: {}", image_half, system_words());
  if (mprotect(data(), image_half, PROT_READ | PROT_WRITE) != 0)
    return fail(TC_ERR_NO_MEMORY, "mapping {} bytes for the data of ifuncs: {}", image_half, system_words());
  // A huge page would make the first variable of the first ifunc cost 2 MiB.
  (void)madvise(data(), image_half, MADV_NOHUGEPAGE);
  writable_ = map_at(nullptr, image_half, PROT_READ | PROT_WRITE, MAP_SHARED, memory_);
  if (writable_ == nullptr)
    return fail(TC_ERR_NO_MEMORY, "mapping {} bytes to write code through: {}", image_half, system_words());
  return {};
}

Status CodeMapping::commit(size_t chunk) {
  const size_t offset = chunk * chunk_bytes;
  // Allocating now turns a full system into an error here, not into a SIGBUS at the first write.
  if (fallocate(memory_, 0, static_cast<off_t>(offset), static_cast<off_t>(chunk_bytes)) != 0)
    return fail(TC_ERR_NO_MEMORY, "allocating {} bytes for code: {}", chunk_bytes, system_words());
  if (mprotect(code_ + offset, chunk_bytes, is_out() ? PROT_READ : PROT_READ | PROT_EXEC) != 0)
    return fail(TC_ERR_UNSUPPORTED, "making a memfd executable: {}", system_words());
  // Where the kernel is too old for these, pages are mapped by their first use.
  (void)populate(writable_ + offset, chunk_bytes);
  if (!is_out()) (void)madvise(code_ + offset, chunk_bytes, MADV_POPULATE_READ);
  live_[chunk] = true;
  return {};
}

Status CodeMapping::move_out() {
  TC_CHECK(share_data());
  for (size_t chunk = 0; chunk < live_.size(); ++chunk)
    if (live_[chunk] && mprotect(code_ + chunk * chunk_bytes, chunk_bytes, PROT_READ) != 0)
      return fail(TC_ERR_UNSUPPORTED, "making {} bytes of code no longer executable: {}", chunk_bytes, system_words());
  // Mappings that are there may go on writing, so this must come after ours.
  constexpr int fixed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (fcntl(memory_, F_ADD_SEALS, fixed | F_SEAL_FUTURE_WRITE) != 0 || fcntl(data_memory_, F_ADD_SEALS, fixed) != 0)
    return fail(TC_ERR_UNSUPPORTED, "sealing the memfds for code that another process runs: {}", system_words());
  return {};
}

// A memfd in the place of the data half, at the same address.
Status CodeMapping::share_data() {
  data_memory_ = make_memfd("threechains-data");
  if (data_memory_ < 0) return fail(TC_ERR_UNSUPPORTED, "memfd_create for the data of ifuncs: {}", system_words());
  if (ftruncate(data_memory_, static_cast<off_t>(image_half)) != 0)
    return fail(TC_ERR_UNSUPPORTED, "sizing the memfd for data to {} bytes: {}", image_half, system_words());
  if (map_at(data(), image_half, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, data_memory_) == nullptr)
    return fail(TC_ERR_NO_MEMORY, "mapping {} bytes for the data of ifuncs: {}", image_half, system_words());
  (void)madvise(data(), image_half, MADV_NOHUGEPAGE);
  return {};
}

ExportedMemory CodeMapping::exported() const noexcept {
  return {memory_, data_memory_, reinterpret_cast<uintptr_t>(code_), image_half};
}

Status CodeMapping::allocate_data(size_t offset, size_t bytes) {
  if (bytes == 0 || fallocate(data_memory_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return {};
  return fail(TC_ERR_NO_MEMORY, "allocating {} bytes for the data of ifuncs: {}", bytes, system_words());
}

void CodeMapping::map_data(size_t offset, size_t bytes) noexcept {
  if (offset < image_half) (void)populate(data() + offset, std::min(bytes, image_half - offset));
}

bool CodeMapping::decommit(size_t chunk) noexcept {
  const size_t offset = chunk * chunk_bytes;
  const auto free_pages = [offset](int file) {
    (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(chunk_bytes));
  };
  if (is_out()) {
    free_pages(data_memory_);
    return false;
  }
  (void)mprotect(code_ + offset, chunk_bytes, PROT_NONE);
  free_pages(memory_);
  (void)madvise(data() + offset, chunk_bytes, MADV_DONTNEED);
  live_[chunk] = false;
  return true;
}

namespace {

size_t whole_pages(size_t size) noexcept {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (size + page - 1) & ~(page - 1);
}

}  // namespace

bool populate(void* begin, size_t bytes) noexcept { return madvise(begin, bytes, MADV_POPULATE_WRITE) == 0; }

Result<LoneMapping> map_lone(size_t text_bytes, size_t data_bytes) {
  LoneMapping mapping{.text_bytes = whole_pages(std::max(text_bytes, size_t{1})),
                      .data_bytes = whole_pages(data_bytes)};
  const size_t reserved = data_bytes == 0 ? mapping.text_bytes : image_half + mapping.data_bytes;
  mapping.text = map_at(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (mapping.text == nullptr) return fail(TC_ERR_NO_MEMORY, "mapping {} bytes for code: {}", reserved, system_words());
  if (data_bytes == 0) return mapping;
  mapping.data = mapping.text + image_half;
  // Nothing uses the addresses between the halves.
  if (mapping.text_bytes != image_half) munmap(mapping.text + mapping.text_bytes, image_half - mapping.text_bytes);
  return mapping;
}

Status seal_lone(const LoneMapping& mapping) {
  if (mprotect(mapping.text, mapping.text_bytes, PROT_READ | PROT_EXEC) != 0)
    return fail(TC_ERR_UNSUPPORTED, "making {} bytes of code executable: {}", mapping.text_bytes, system_words());
  return {};
}

void unmap_lone(const LoneMapping& mapping) noexcept {
  munmap(mapping.text, mapping.text_bytes);
  if (mapping.data != nullptr) munmap(mapping.data, mapping.data_bytes);
}

// ---- Instruction caches

namespace {

// int f(void) { return VALUE; }
#if defined(__x86_64__)
constexpr unsigned char returns_1[] = {0xB8, 1, 0, 0, 0, 0xC3};  // mov eax, 1; ret
constexpr unsigned char returns_2[] = {0xB8, 2, 0, 0, 0, 0xC3};
#elif defined(__aarch64__)
constexpr unsigned char returns_1[] = {0x20, 0x00, 0x80, 0x52, 0xC0, 0x03, 0x5F, 0xD6};  // mov w0, #1; ret
constexpr unsigned char returns_2[] = {0x40, 0x00, 0x80, 0x52, 0xC0, 0x03, 0x5F, 0xD6};
#elif defined(__riscv)
constexpr unsigned char returns_1[] = {0x05, 0x45, 0x82, 0x80};  // c.li a0, 1; c.ret
constexpr unsigned char returns_2[] = {0x09, 0x45, 0x82, 0x80};
#else
#error "two functions of this architecture are needed"
#endif

int run(std::byte* code, std::byte* writable, const unsigned char* bytes, size_t size) noexcept {
  std::memcpy(writable, bytes, size);
  sync_instructions(code, size);
  return reinterpret_cast<int (*)()>(code)();
}

}  // namespace

void sync_instructions(std::byte* begin, size_t bytes) noexcept {
  auto* const first = reinterpret_cast<char*>(begin);
  __builtin___clear_cache(first, first + bytes);
}

void sync_other_threads() noexcept {
#if !defined(__x86_64__)
  // Registering again is cheap and does nothing. Where the kernel has neither, the other thread's next system call or
  // interrupt has the same effect.
  (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
  (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
#endif
}

bool new_code_runs(std::byte* code, std::byte* writable) noexcept {
  const bool first = run(code, writable, returns_1, sizeof returns_1) == 1;
  const bool second = run(code, writable, returns_2, sizeof returns_2) == 2;
  std::memset(writable, 0, sizeof returns_1);
  return first && second;
}

}  // namespace tc::memory
