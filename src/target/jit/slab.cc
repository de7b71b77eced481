// SPDX-License-Identifier: Apache-2.0
#include "target/jit/slab.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "target/jit/free_list.h"

namespace tc::target::jit {

namespace {

// Address space only: pages cost memory once they are written.
constexpr size_t area_size = 64u * 1024 * 1024;
// Freed pages go back to the kernel when this much was freed: a system call for many ifuncs, not for each.
constexpr size_t trim_after = 1024u * 1024;

#if defined(__x86_64__)
constexpr int trap_byte = 0xcc;  // int3
#else
constexpr int trap_byte = 0;  // an undefined instruction on aarch64 and riscv64
#endif

std::unexpected<Error> system_error(tc_status_t code, std::string_view what) {
  return fail(code, "{} for JIT code: {}", what, std::strerror(errno));
}

// A mapping that goes away again.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, size_t size) noexcept : address_(static_cast<std::byte*>(address)), size_(size) {}
  ~Mapping() {
    if (address_) ::munmap(address_, size_);
  }
  Mapping(Mapping&& other) noexcept : address_(std::exchange(other.address_, nullptr)), size_(other.size_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    return *this;
  }
  std::byte* get() const noexcept { return address_; }

 private:
  std::byte* address_ = nullptr;
  size_t size_ = 0;
};

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// Address space for `size` bytes at a multiple of Slabs::largest_alignment.
Result<Mapping> reserve(size_t size) {
  constexpr auto alignment = Slabs::largest_alignment;
  const auto flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* found = ::mmap(nullptr, size + alignment, PROT_NONE, flags, -1, 0);
  if (found == MAP_FAILED) return system_error(TC_ERR_NO_MEMORY, "cannot reserve address space");
  auto* start = static_cast<std::byte*>(found);
  const auto misaligned = reinterpret_cast<uintptr_t>(start) % alignment;
  const auto before = misaligned == 0 ? 0 : alignment - misaligned;
  if (before > 0) ::munmap(start, before);
  if (before < alignment) ::munmap(start + before + size, alignment - before);
  return Mapping(start + before, size);
}

}  // namespace

// One stretch: code, constants and data areas side by side, and the place to write the first two.
class Slab {
 public:
  static Result<std::unique_ptr<Slab>> create(size_t area) {
    Descriptor file(::memfd_create("threechains-jit", MFD_CLOEXEC));
    if (file.get() < 0) return system_error(TC_ERR_NO_MEMORY, "cannot create a memory file");
    const auto file_size = 2 * area;
    if (::ftruncate(file.get(), static_cast<off_t>(file_size)) != 0)
      return system_error(TC_ERR_NO_MEMORY, "cannot size the memory file");
    TC_ASSIGN(auto view, reserve(3 * area));
    TC_CHECK(map(view.get(), area, PROT_READ | PROT_EXEC, MAP_SHARED, file.get(), 0));
    TC_CHECK(map(view.get() + area, area, PROT_READ, MAP_SHARED, file.get(), area));
    TC_CHECK(map(view.get() + 2 * area, area, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    void* write = ::mmap(nullptr, file_size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (write == MAP_FAILED) return system_error(TC_ERR_NO_MEMORY, "cannot map memory to write");
    return std::unique_ptr<Slab>(new Slab(area, std::move(file), std::move(view), Mapping(write, file_size)));
  }

  bool empty() const noexcept { return used() == 0; }
  size_t used() const noexcept { return lists_[0].used() + lists_[1].used() + lists_[2].used(); }

  // All three or nothing.
  bool take(const std::array<Need, use_count>& needs, std::array<Piece, use_count>& pieces) {
    std::array<Piece, use_count> taken{};
    for (size_t i = 0; i < use_count; ++i) {
      if (needs[i].size == 0) continue;
      const auto size = FreeList::round_up(needs[i].size, FreeList::granule);
      const auto offset = lists_[i].take(size, std::max(needs[i].alignment, FreeList::granule));
      if (!offset) {
        for (size_t j = 0; j < i; ++j) give(j, taken[j]);
        return false;
      }
      auto* address = area_address(i) + *offset;
      taken[i] = {address, i == data_area ? address : write_.get() + i * area_ + *offset, size};
    }
    if (taken[data_area].size > 0) std::memset(taken[data_area].writable, 0, taken[data_area].size);
    pieces = taken;
    return true;
  }

  void give_all(const std::array<Piece, use_count>& pieces) noexcept {
    for (size_t i = 0; i < use_count; ++i) {
      if (i == code_area && pieces[i].size > 0) std::memset(pieces[i].writable, trap_byte, pieces[i].size);
      give(i, pieces[i]);
    }
    if (freed_ >= trim_after) trim();
  }

 private:
  static constexpr auto code_area = static_cast<size_t>(Use::code);
  static constexpr auto data_area = static_cast<size_t>(Use::data);

  Slab(size_t area, Descriptor file, Mapping view, Mapping write)
      : area_(area), file_(std::move(file)), view_(std::move(view)), write_(std::move(write)) {}

  static Status map(std::byte* at, size_t size, int protection, int flags, int file, size_t offset) {
    const auto all_flags = flags | MAP_FIXED | MAP_NORESERVE;
    if (::mmap(at, size, protection, all_flags, file, static_cast<off_t>(offset)) != MAP_FAILED) return {};
    if (protection & PROT_EXEC) return system_error(TC_ERR_UNSUPPORTED, "this machine grants no executable memory");
    return system_error(TC_ERR_NO_MEMORY, "cannot map memory");
  }

  std::byte* area_address(size_t index) const noexcept { return view_.get() + index * area_; }

  void give(size_t index, const Piece& piece) noexcept {
    if (piece.size == 0) return;
    lists_[index].give(static_cast<size_t>(piece.address - area_address(index)), piece.size);
    freed_ += piece.size;
  }

  // Returns whole free pages to the kernel. They read as zeroes afterwards.
  void trim() noexcept {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < use_count; ++i) {
      for (const auto [offset, size] : lists_[i].stretches()) {
        const auto start = FreeList::round_up(offset, page);
        const auto end = (offset + size) & ~(page - 1);
        if (start >= end) continue;
        if (i == data_area) {
          ::madvise(area_address(i) + start, end - start, MADV_DONTNEED);
        } else {
          ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(i * area_ + start),
                      static_cast<off_t>(end - start));
        }
      }
    }
    freed_ = 0;
  }

  const size_t area_;
  Descriptor file_;
  Mapping view_;   // code, constants, data
  Mapping write_;  // code, constants
  std::array<FreeList, use_count> lists_{FreeList(area_), FreeList(area_), FreeList(area_)};
  size_t freed_ = 0;
};

Allocation& Allocation::operator=(Allocation&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(slab_, other.slab_);
  std::swap(pieces_, other.pieces_);
  return *this;
}

size_t Allocation::bytes() const noexcept { return pieces_[0].size + pieces_[1].size + pieces_[2].size; }

void Allocation::reset() noexcept {
  if (slab_) owner_->release(slab_, pieces_);
  slab_ = nullptr;
  owner_.reset();
}

std::shared_ptr<Slabs> Slabs::create() { return std::shared_ptr<Slabs>(new Slabs); }

Slabs::~Slabs() = default;

Result<Allocation> Slabs::allocate(const std::array<Need, use_count>& needs) {
  size_t area = area_size;
  for (const auto& need : needs) {
    if (need.size > largest_piece)
      return fail(TC_ERR_TOO_LARGE, "the code wants {} bytes in one piece when {} are allowed", need.size, largest_piece);
    if (need.alignment > largest_alignment)
      return fail(TC_ERR_TOO_LARGE, "the code wants an alignment of {} bytes when {} is the most", need.alignment,
                  largest_alignment);
    area = std::max(area, FreeList::round_up(need.size, largest_alignment));
  }
  const std::lock_guard lock(mutex_);
  Allocation result;
  for (const auto& slab : slabs_) {
    if (!slab->take(needs, result.pieces_)) continue;
    result.slab_ = slab.get();
    break;
  }
  if (!result.slab_) {
    TC_ASSIGN(auto slab, Slab::create(area));
    slab->take(needs, result.pieces_);
    result.slab_ = slabs_.emplace_back(std::move(slab)).get();
  }
  result.owner_ = shared_from_this();
  return result;
}

void Slabs::release(Slab* slab, const std::array<Piece, use_count>& pieces) noexcept {
  const std::lock_guard lock(mutex_);
  slab->give_all(pieces);
  // The first slab stays: a node that runs one ifunc at a time would map and unmap it for each.
  if (!slab->empty() || slab == slabs_.front().get()) return;
  std::erase_if(slabs_, [slab](const auto& held) { return held.get() == slab; });
}

size_t Slabs::bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& slab : slabs_) sum += slab->used();
  return sum;
}

size_t Slabs::slab_count() const noexcept {
  const std::lock_guard lock(mutex_);
  return slabs_.size();
}

}  // namespace tc::target::jit
