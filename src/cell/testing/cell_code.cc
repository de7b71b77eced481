// SPDX-License-Identifier: Apache-2.0
#include "cell/testing/cell_code.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "base/file.h"
#include "wire/abi_names.h"
#include "wire/bundle.h"
#include "wire/object_format.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace tc::cell::testing {

namespace {

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

std::byte* map(void* at, size_t size, int protection, int flags, const Fd& file) {
  void* const mapped = ::mmap(at, size, protection, flags, file.get(), 0);
  if (mapped == MAP_FAILED) throw std::runtime_error("mmap");
  return static_cast<std::byte*>(mapped);
}

Fd make_file(const char* name, size_t size) {
  Fd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0) throw std::runtime_error(name);
  return file;
}

// Far from where the kernel puts programs, libraries and stacks.
void* wanted_address() {
  static uint64_t next = 0x2000'0000'0000;
  return reinterpret_cast<void*>(next += uint64_t{1} << 30);
}

}  // namespace

CellCode::CellCode() : code_file_(make_file("test-code", half)), data_file_(make_file("test-data", half)) {
  writable_ = map(nullptr, half, PROT_READ | PROT_WRITE, MAP_SHARED, code_file_);
  if (::fcntl(code_file_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    throw std::runtime_error("sealing code");
  text_ = map(wanted_address(), 2 * half, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, Fd());
  map(text_ + half, half, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, data_file_);
}

CellCode::~CellCode() {
  ::munmap(writable_, half);
  ::munmap(text_, 2 * half);
}

uint64_t CellCode::load(const std::string& name, const CellProcess& cell) {
  constexpr size_t most = size_t{16} << 20;
  const auto bundle = must(Bundle::read(must(read_file(std::string(TC_TEST_IFUNCS "/") + name + ".ifunc", most))));
  const auto slice = bundle.find(SliceRole::target, SliceForm::object, TargetTriple::host());
  if (!slice) throw std::runtime_error("no object for this host");
  const auto file = must(bundle.unpack(*slice));
  const auto image = must(target::ElfImage::read(file, TargetTriple::host().arch));
  used_ = (used_ + image.alignment() - 1) / image.alignment() * image.alignment();
  std::memcpy(writable_ + used_, image.text().bytes.data(), image.text().bytes.size());
  if (!image.data().bytes.empty())
    std::memcpy(text_ + used_ + half, image.data().bytes.data(), image.data().bytes.size());
  for (size_t i = 0; i < image.relocation_count(); ++i) apply(image, i, cell);
  const auto entry = reinterpret_cast<uintptr_t>(text_) + used_ + *image.find_code(abi_names::main);
  used_ += std::max(image.text().size, image.data().size);
  return entry;
}

void CellCode::apply(const target::ElfImage& image, size_t index, const CellProcess& cell) {
  const auto relocation = image.relocation(index);
  const auto kind = object_format::relocation_of(image.arch(), static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info)));
  if (kind == object_format::Relocation::nothing) return;
  auto value = static_cast<uint64_t>(relocation.r_addend);
  const auto base = reinterpret_cast<uintptr_t>(text_) + used_;
  if (kind == object_format::Relocation::relative) {
    value += base;
  } else {
    const auto symbol = must(image.symbol(ELF64_R_SYM(relocation.r_info)));
    void* const address = symbol.defined ? reinterpret_cast<void*>(base + symbol.address) : cell.symbol(symbol.name);
    if (address == nullptr) throw std::runtime_error("no symbol " + std::string(symbol.name));
    value += reinterpret_cast<uintptr_t>(address);
  }
  std::memcpy(text_ + used_ + relocation.r_offset, &value, sizeof value);
}

}  // namespace tc::cell::testing
