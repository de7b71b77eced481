// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "memory/code_mapping.h"

namespace tc::memory {

namespace {

constexpr size_t unit = 64;        // a cache line: images never share one
constexpr size_t kept_chunks = 1;  // empty chunks that stay committed, so that load and free in turn cost no calls
constexpr size_t data_ahead = size_t{8} * 1024;  // data pages that are mapped before they are needed
constexpr size_t data_step = size_t{16} * 1024;  // and how many at a time
constexpr size_t low_water = chunk_bytes / 4;

// A jump into code that was freed stops at these traps, and does not run what is left of the code. `size` is a multiple
// of 4.
void fill_with_traps(std::byte* at, size_t size) noexcept {
#if defined(__x86_64__)
  std::memset(at, 0xCC, size);  // int3
#else
#if defined(__aarch64__)
  constexpr unsigned char trap[4] = {0x00, 0x00, 0x20, 0xD4};  // brk #0
#else
  constexpr unsigned char trap[4] = {0x02, 0x90, 0x02, 0x90};  // c.ebreak, twice
#endif
  for (size_t i = 0; i + 4 <= size; i += 4) std::memcpy(at + i, trap, 4);
#endif
}

}  // namespace

// One pair of halves.
struct Arena::Region {
  explicit Region(CodeMapping m) : mapping(std::move(m)), free(image_half), used(image_half / chunk_bytes) {}

  bool holds(const Placement& p) const noexcept {
    return p.text >= mapping.code() && p.text < mapping.code() + image_half;
  }

  CodeMapping mapping;
  FreeRanges free;
  size_t data_end = 0;       // behind the highest data that was placed
  size_t data_mapped = 0;    // end of the data pages that were mapped ahead
  std::vector<size_t> used;  // bytes of each chunk that placements have
};

Result<std::unique_ptr<Arena>> Arena::create(Kind kind) {
  std::unique_ptr<Arena> arena(new Arena(kind));
  if (kind == Kind::separate) return arena;
  auto mapping = CodeMapping::create();
  if (mapping && !new_code_runs(mapping->code(), mapping->writable()))
    mapping = fail(TC_ERR_UNSUPPORTED, "this emulator does not run code that is written at another address");
  if (!mapping) {
    if (kind == Kind::exported || mapping.error().code != TC_ERR_UNSUPPORTED) return fail(std::move(mapping).error());
    arena->kind_ = Kind::separate;
    return arena;
  }
  if (kind == Kind::exported) TC_CHECK(mapping->move_out());
  arena->regions_.push_back(std::make_unique<Region>(std::move(*mapping)));
  arena->committed_ = chunk_bytes;
  arena->empty_chunks_ = 1;
  return arena;
}

Arena::Arena(Kind kind) : kind_(kind) {}

Arena::~Arena() = default;

std::unique_lock<std::mutex> Arena::lock() noexcept {
  return kind_ == Kind::exported ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
}

ExportedMemory Arena::exported() const noexcept {
  return kind_ == Kind::exported ? regions_.front()->mapping.exported() : ExportedMemory{};
}

Result<Placement> Arena::place(size_t text_bytes, size_t data_bytes, size_t alignment) {
  const size_t largest = std::max({text_bytes, data_bytes, size_t{1}});
  if (largest > image_half)
    return fail(TC_ERR_TOO_LARGE, "half of an image is {} bytes when at most {} are allowed", largest, image_half);
  if (kind_ == Kind::separate) {
    TC_ASSIGN(const auto lone, map_lone(text_bytes, data_bytes));
    used_ += lone.text_bytes;
    committed_ += lone.text_bytes;
    return Placement{lone.text, lone.text, lone.text + image_half, lone.text_bytes, lone.data_bytes};
  }
  const auto locked = lock();
  // A placement takes the room up to the next multiple of its alignment, so that unusable bytes are counted, too.
  alignment = std::max(alignment, unit);
  const size_t bytes = (largest + alignment - 1) & ~(alignment - 1);
  for (auto& region : regions_)
    if (const auto offset = region->free.take(bytes, alignment)) return place_in(*region, *offset, bytes, data_bytes);
  if (kind_ == Kind::exported)
    return fail(TC_ERR_NO_MEMORY, "no room for {} bytes of code for another process: {} bytes of {} are in use", bytes,
                used_, image_half);
  TC_ASSIGN(auto mapping, CodeMapping::create());
  committed_ += chunk_bytes;
  ++empty_chunks_;
  auto& region = *regions_.emplace_back(std::make_unique<Region>(std::move(mapping)));
  return place_in(region, *region.free.take(bytes, alignment), bytes, data_bytes);
}

Result<Placement> Arena::place_in(Region& region, size_t offset, size_t bytes, size_t data_bytes) {
  auto committed = commit(region, offset, bytes);
  if (committed && region.mapping.is_out()) committed = region.mapping.allocate_data(offset, data_bytes);
  if (!committed) {
    uncount(region, offset, bytes);
    region.free.give(offset, bytes);
    return fail(std::move(committed).error());
  }
  used_ += bytes;
  if (data_bytes != 0) region.data_end = std::max(region.data_end, offset + data_bytes);
  return Placement{region.mapping.code() + offset, region.mapping.writable() + offset, region.mapping.data() + offset,
                   bytes, data_bytes};
}

namespace {

// Calls `each(chunk, bytes of the range that lie in it)`.
template <class F>
void for_chunks(size_t offset, size_t bytes, F each) {
  for (size_t at = offset, end = offset + bytes; at < end;) {
    const size_t next = std::min(end, (at / chunk_bytes + 1) * chunk_bytes);
    each(at / chunk_bytes, next - at);
    at = next;
  }
}

}  // namespace

// Maps the pages behind the highest data, because the data of the next image will lie there.
void Arena::map_data_ahead() noexcept {
  for (auto& region : regions_) {
    if (region->data_end == 0 || region->data_end + data_ahead <= region->data_mapped) continue;
    const size_t begin = region->data_end / data_step * data_step;
    region->mapping.map_data(begin, data_step + data_ahead);
    region->data_mapped = begin + data_step + data_ahead;
  }
}

// Counts the range as used, whether or not there was memory for it.
Status Arena::commit(Region& region, size_t offset, size_t bytes) {
  Status result;
  for_chunks(offset, bytes, [&](size_t chunk, size_t part) {
    if (!region.mapping.committed(chunk)) {
      if (result) result = region.mapping.commit(chunk);
      if (region.mapping.committed(chunk)) committed_ += chunk_bytes;
    } else if (region.used[chunk] == 0) {
      --empty_chunks_;
    }
    region.used[chunk] += part;
  });
  return result;
}

void Arena::uncount(Region& region, size_t offset, size_t bytes) noexcept {
  for_chunks(offset, bytes, [&](size_t chunk, size_t part) {
    region.used[chunk] -= part;
    if (region.used[chunk] != 0 || !region.mapping.committed(chunk)) return;
    if (empty_chunks_ < kept_chunks) {
      ++empty_chunks_;
      return;
    }
    region.data_mapped = std::min(region.data_mapped, chunk * chunk_bytes);
    if (region.mapping.decommit(chunk))
      committed_ -= chunk_bytes;
    else
      ++empty_chunks_;
  });
}

Status Arena::seal(const Placement& placement) {
  if (kind_ == Kind::separate) {
    // `bytes` is what map_lone rounded up to.
    TC_CHECK(seal_lone({.text = placement.text, .text_bytes = placement.bytes}));
  }
  sync_instructions(placement.text, placement.bytes);
  return {};
}

void Arena::release(const Placement& placement) noexcept {
  if (placement.text == nullptr) return;
  const auto locked = lock();
  used_ -= placement.bytes;
  if (kind_ == Kind::separate) {
    committed_ -= placement.bytes;
    unmap_lone(
        {placement.text, placement.data_bytes != 0 ? placement.data : nullptr, placement.bytes, placement.data_bytes});
    return;
  }
  for (auto& region : regions_) {
    if (!region->holds(placement)) continue;
    const auto offset = static_cast<size_t>(placement.text - region->mapping.code());
    fill_with_traps(placement.writable, placement.bytes);
    sync_instructions(placement.text, placement.bytes);
    uncount(*region, offset, placement.bytes);
    region->free.give(offset, placement.bytes);
    return;
  }
}

void Arena::prepare() noexcept {
  if (kind_ == Kind::separate) return;
  const auto locked = lock();
  map_data_ahead();
  if (empty_chunks_ != 0 || committed_ - used_ >= low_water) return;
  for (auto& region : regions_)
    for (size_t chunk = 0; chunk < region->used.size(); ++chunk) {
      if (region->mapping.committed(chunk)) continue;
      if (region->mapping.commit(chunk)) {
        committed_ += chunk_bytes;
        ++empty_chunks_;
      }
      return;
    }
}

// ---- Free ranges

FreeRanges::FreeRanges(size_t size) {
  if (size != 0) free_.emplace(0, size);
}

std::optional<size_t> FreeRanges::take(size_t size, size_t alignment) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, end] = *it;
    const size_t at = (begin + alignment - 1) & ~(alignment - 1);
    if (at > end || end - at < size) continue;
    if (at == begin && at + size == end) {
      free_.erase(it);
    } else if (at == begin) {
      // Moves the range's begin without allocating: this is the usual case, on the way of every load.
      auto node = free_.extract(it++);
      node.key() = at + size;
      free_.insert(it, std::move(node));
    } else {
      if (at + size != end) free_.emplace_hint(std::next(it), at + size, end);
      it->second = at;
    }
    return at;
  }
  return std::nullopt;
}

void FreeRanges::give(size_t offset, size_t size) noexcept {
  const size_t end = offset + size;
  const auto next = free_.lower_bound(offset);
  const bool joins_next = next != free_.end() && next->first == end;
  if (next != free_.begin()) {
    if (const auto before = std::prev(next); before->second == offset) {
      before->second = joins_next ? next->second : end;
      if (joins_next) free_.erase(next);
      return;
    }
  }
  if (joins_next) {
    auto node = free_.extract(next);
    node.key() = offset;
    free_.insert(std::move(node));
    return;
  }
  try {
    free_.emplace_hint(next, offset, end);
  } catch (const std::bad_alloc&) {  // it stays taken, because there is no memory to record that it is free
  }
}

}  // namespace tc::memory
