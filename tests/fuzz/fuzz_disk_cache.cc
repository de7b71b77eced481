// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an entry of the disk cache: a miss that removes it, or an entry that storing its payload gives again.
// The hashes in an entry stop most mutations early: so the input is taken as the whole entry, and as changes to a
// sound one.
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "target/disk_cache.h"

namespace {

constexpr std::string_view key = "key";

void expect(bool truth) {
  if (!truth) std::abort();
}

struct Fixture {
  Fixture() {
    auto opened = tc::target::DiskCache::open(directory.path());
    expect(opened.has_value());
    cache = std::move(*opened);
    entry = directory.path() / tc::target::DiskCache::file_name(key);
    expect(cache->store(key, tc::as_bytes("a payload of some bytes")).has_value());
    sound = *tc::read_file(entry, 1000);
  }

  tc::TemporaryDirectory directory = tc::TemporaryDirectory::create().value();
  std::filesystem::path entry;
  std::unique_ptr<tc::target::DiskCache> cache;
  tc::Bytes sound;
};

void check(Fixture& fixture, tc::ByteView entry) {
  expect(tc::write_file_atomically(fixture.entry, entry).has_value());
  const auto payload = fixture.cache->find(key);
  expect(std::filesystem::exists(fixture.entry) == payload.has_value());
  if (!payload) return;
  expect(fixture.cache->store(key, *payload).has_value());
  expect(std::ranges::equal(*tc::read_file(fixture.entry, entry.size()), entry));
}

// Pairs of bytes: where to change, and by what; then what is left goes behind.
tc::Bytes changed(tc::Bytes entry, tc::ByteView changes) {
  tc::Reader reader(changes);
  for (unsigned count = reader.u8() % 8; count > 0; --count) {
    const size_t at = reader.u8() % entry.size();
    entry[at] ^= std::byte{reader.u8()};
  }
  const auto rest = reader.rest();
  entry.insert(entry.end(), rest.begin(), rest.end());
  return entry;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Fixture fixture;
  const tc::ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  check(fixture, bytes);
  check(fixture, changed(fixture.sound, bytes));
  return 0;
}
