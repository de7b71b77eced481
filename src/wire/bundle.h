// SPDX-License-Identifier: Apache-2.0
//
// The fat bundle: everything needed to run one ifunc anywhere, as one `.ifunc` file (main paper, section
// III.C: "fat-bitcode"; the layout is ours, see docs/wire-format.md).
//
//     magic "TCB1" | u32 manifest size | manifest | slice 0 | slice 1 | ... | signatures, if there are any
//
// The content id is the SHA-256 of the manifest, and the manifest holds the SHA-256 of every slice: any part
// can travel and be checked by itself. A bundle on the wire may therefore lack slices that its receiver
// cannot use; which ones are there is said in front of it (`carried`), never guessed.
//
// Thread: any, one at a time for one Bundle; copies share only bytes that never change.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/content_id.h"
#include "wire/target_triple.h"

namespace tc {

// What a slice is for. Source-side code (payload_init and its like) is never sent to a target. A bundled ifunc is
// another whole bundle, which this ifunc sends on by name: it is sent along, for every CPU that it has code for.
enum class SliceRole : uint8_t { target = 0, source = 1, bundled = 2 };
enum class SliceForm : uint8_t { bitcode = 1, object = 2, bundle = 3 };

// Entry points that the ifunc's source file defines (2021 paper, Listing 1.2).
enum Entry : uint8_t {
  entry_main = 1,                  // NAME_main, in target slices
  entry_payload_get_max_size = 2,  // NAME_payload_get_max_size, in source slices
  entry_payload_init = 4,          // NAME_payload_init(payload, payload_size, source_args, size)
  entry_payload_bound = 8,         // 2022 form: NAME_payload_bound
  entry_payload_init_2022 = 16,    // 2022 form: NAME_payload_init(source_args, size, payload, size_t *payload_size)
  entry_library = 32,              // exports functions and data to ifuncs that come later (2021 paper, section 2.1)
  entry_against = 64,              // uses what such libraries export
};

// Limits on what a manifest may claim. Each stops a small file from costing its reader much memory or time.
struct BundleLimits {
  static constexpr size_t manifest_bytes = 64 * 1024;
  static constexpr size_t slices = 64;
  static constexpr size_t dependencies = 64;
  static constexpr size_t imports = 2048;                   // and exports
  static constexpr size_t slice_bytes = 64u * 1024 * 1024;  // unpacked: stops decompression bombs
  static constexpr size_t bundle_bytes = 256u * 1024 * 1024;
  static constexpr size_t name_bytes = 128;
  static constexpr unsigned alignment_log2 = 12;
};

struct Slice {
  TargetTriple triple;  // of a bundled ifunc: none
  SliceRole role = SliceRole::target;
  SliceForm form = SliceForm::bitcode;
  bool compressed = false;     // stored with zstd
  std::string cpu;             // baseline of an object slice ("x86-64-v2"); of a bundled ifunc its name; else empty
  uint32_t stored_size = 0;    // bytes in the bundle
  uint32_t unpacked_size = 0;  // bytes of bitcode or object
  ContentId hash;              // of the stored bytes
};

struct Manifest {
  std::string name;
  uint8_t abi_version = 1;  // of <threechains/ifunc.h>
  uint8_t entries = 0;      // a set of Entry
  uint8_t payload_alignment_log2 = 4;
  std::string tool;                       // what made the bundle: "ifunc 0.1.0"
  std::vector<std::string> dependencies;  // shared libraries, as dlopen names: "libsqlite3.so.0"
  std::vector<std::string> imports;       // undefined symbols of the target slices: ABI, libraries or exports
  std::vector<std::string> exports;       // of a library: symbols of its target slices that others may use
  std::vector<std::string> against;  // names of libraries that export some of `imports`, named in error messages only
  std::vector<Slice> slices;

  bool has(Entry entry) const noexcept { return (entries & entry) != 0; }
};

// Who vouches for a bundle, or for an ifunc that is bundled with it. Opaque here: src/trust makes and checks them. They
// are no part of what the content id names, so that code can be signed later, by several keys.
struct CodeSignature {
  static constexpr uint8_t whole_bundle = 0xff;
  static constexpr size_t most = 64;  // in a bundle, those of bundled ifuncs included

  uint8_t covers = whole_bundle;  // or the number of the slice that is a bundled ifunc
  std::array<std::byte, 32> key{};
  std::array<std::byte, 64> signature{};
  bool operator==(const CodeSignature&) const = default;
};

// A bundle that was read and checked. Copies share its bytes, which never change.
class Bundle {
 public:
  // From a whole `.ifunc` file: every slice present and matching its hash.
  static Result<Bundle> read(ByteView file);
  // From a frame: `carried` has bit i set when slice i is present. `expected` is what the sender named it:
  // another content is TC_ERR_MALFORMED. Slices that are carried are checked against their hash.
  static Result<Bundle> read_carried(ByteView bytes, uint64_t carried, const ContentId& expected);
  // Packs slices into a bundle. `stored[i]` is the stored form of manifest.slices[i]; sizes and hashes in the
  // manifest are filled in here, but for the unpacked size of a compressed slice, which is checked. Writes nothing
  // that read() would refuse: TC_ERR_TOO_LARGE, TC_ERR_INVALID or TC_ERR_MALFORMED says why.
  static Result<Bundle> pack(Manifest manifest, std::vector<Bytes> stored);

  const Manifest& manifest() const noexcept { return head_->manifest; }
  const ContentId& id() const noexcept { return head_->id; }
  bool holds(size_t slice) const noexcept { return (carried_ >> slice & 1) != 0; }
  uint64_t carried() const noexcept { return carried_; }
  ByteView stored(size_t slice) const noexcept;
  // The bitcode or object itself; unpacks when compressed. TC_ERR_NOT_FOUND when the slice is not carried.
  Result<Bytes> unpack(size_t slice) const;

  // The first slice of that role and form which runs on `node`; nothing when there is none.
  std::optional<size_t> find(SliceRole role, SliceForm form, const TargetTriple& node) const noexcept;

  // The ifunc that travels along under that name. TC_ERR_NOT_FOUND when there is none; a bundled ifunc that is not what its
  // slice says fails as Bundle::read() does.
  bool has_bundled(std::string_view name) const noexcept;
  Result<Bundle> bundled(std::string_view name) const;

  // They travel with the bundle: bytes_for() has them, merge() joins them, bundled() gives the ifunc its own.
  const std::vector<CodeSignature>& signatures() const noexcept { return signatures_; }
  // TC_ERR_LIMIT: it has CodeSignature::most. One that is there already is not added again.
  Status add_signature(const CodeSignature& signature);

  // The file: all slices that are held.
  Bytes bytes() const { return bytes_for(carried_); }
  // The same with only the slices in `which` (and held).
  Bytes bytes_for(uint64_t which) const;
  size_t size_for(uint64_t which) const noexcept;
  // What a source sends to a target with this triple: the slices that it can run and, when there are any, bundled ifuncs.
  uint64_t useful_for(const TargetTriple& node) const noexcept;
  // Does the ifunc have code for `node`, here or elsewhere?
  bool lists(const TargetTriple& node) const noexcept;
  // Takes over the slices and signatures of `other` (same id) that are missing here. Signatures beyond CodeSignature::most
  // are left out.
  void merge(const Bundle& other);

 private:
  struct Head {
    Manifest manifest;
    ContentId id;
    Bytes bytes;  // of the manifest
  };
  static const std::shared_ptr<const Head>& empty_head();
  // `carried` as in read_carried(); nothing: every slice is there.
  static Result<Bundle> read_parts(ByteView bytes, std::optional<uint64_t> carried);
  Status read_slices(Reader& in, Head& head);

  std::shared_ptr<const Head> head_ = empty_head();
  std::vector<std::shared_ptr<const Bytes>> stored_;  // null: not carried
  uint64_t carried_ = 0;
  std::vector<CodeSignature> signatures_;
};

// zstd, with the frame's size written in. Unpacking checks against `unpacked_size` before it allocates.
Result<Bytes> compress(ByteView bytes);
Result<Bytes> decompress(ByteView stored, size_t unpacked_size);

}  // namespace tc
