// SPDX-License-Identifier: Apache-2.0
//
// The fat bundle: everything needed to run one ifunc anywhere, as one `.ifunc` file (main paper, section
// III.C: "fat-bitcode"; the layout is ours, see docs/wire-format.md).
//
//     magic "TCB1" | u32 manifest size | manifest | slice 0 | slice 1 | ... | signatures, if there are any
//
// The content id is the SHA-256 of the manifest, and the manifest holds the SHA-256 of every slice. So every part can
// travel and be checked by itself. A bundle on the wire may lack slices that its receiver cannot use. The frame says in
// front of it which slices are there (`carried`).
//
// Threads: any; one at a time uses a Bundle. Copies share only bytes that never change.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/content_id.h"
#include "wire/target_triple.h"

namespace tc {

// The purpose of a slice.
//   target: code that targets run.
//   source: code that the source runs (payload_init and the like). It is never sent.
//   bundled: another whole bundle. This ifunc sends the ifunc in it on by name. It travels with all of its slices.
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
  // No entry point, but what the author promises (TC_CONCURRENT): the code may run at the same time as other code of the
  // node. Libraries never have it. It is the last bit.
  entry_concurrent = 128,
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

// The triple of the source slice that has what callers in Python pass. No machine has it.
inline constexpr std::string_view python_signature = "python-signature";

struct Slice {
  TargetTriple triple;  // empty for a bundled ifunc
  SliceRole role = SliceRole::target;
  SliceForm form = SliceForm::bitcode;
  bool compressed = false;     // stored with zstd
  std::string cpu;             // baseline of an object slice ("x86-64-v2"), name of a bundled ifunc, or empty
  uint32_t stored_size = 0;    // bytes in the bundle
  uint32_t unpacked_size = 0;  // bytes of bitcode or object
  ContentId hash;              // of the stored bytes
};

struct Manifest {
  std::string name;
  uint8_t abi_version = 1;  // of <threechains/ifunc.h>
  uint8_t entries = 0;      // a set of Entry
  uint8_t payload_alignment_log2 = 4;
  std::string tool;                       // the program that made the bundle: "ifunc 0.1.0"
  std::vector<std::string> dependencies;  // shared libraries, as dlopen names: "libsqlite3.so.0"
  std::vector<std::string> imports;       // undefined symbols of the target slices: ABI, libraries or exports
  std::vector<std::string> exports;       // of a library: symbols of its target slices that others may use
  std::vector<std::string> against;  // names of libraries that export some of `imports`, named in error messages only
  std::vector<Slice> slices;

  bool has(Entry entry) const noexcept { return (entries & entry) != 0; }
};

// A signature of a bundle, or of an ifunc that is bundled with it. src/trust makes and checks signatures; here they are
// only bytes. The content id does not cover them, so that several keys can sign code later.
struct CodeSignature {
  static constexpr uint8_t whole_bundle = 0xff;
  static constexpr size_t most = 64;  // in a bundle, including those of bundled ifuncs

  uint8_t covers = whole_bundle;  // or the number of a slice that is a bundled ifunc
  std::array<std::byte, 32> key{};
  std::array<std::byte, 64> signature{};
  bool operator==(const CodeSignature&) const = default;
};

// A bundle that was read and checked.
class Bundle {
 public:
  // Reads a whole `.ifunc` file. Every slice must be there and match its hash.
  static Result<Bundle> read(ByteView file);
  // Reads a bundle of a frame. Bit i of `carried` says that slice i is there; each of these must match its hash.
  // `expected` is the sender's content id for it. TC_ERR_MALFORMED: the content has another id.
  static Result<Bundle> read_carried(ByteView bytes, uint64_t carried, const ContentId& expected);
  // Packs slices into a bundle. `stored[i]` is the stored form of manifest.slices[i]. Fills in the sizes and hashes of
  // the manifest. The caller gives the unpacked size of a compressed slice, which is checked. Refuses everything that
  // read() would refuse: TC_ERR_TOO_LARGE, TC_ERR_INVALID, TC_ERR_MALFORMED.
  static Result<Bundle> pack(Manifest manifest, std::vector<Bytes> stored);

  const Manifest& manifest() const noexcept { return head_->manifest; }
  const ContentId& id() const noexcept { return head_->id; }
  bool holds(size_t slice) const noexcept { return (carried_ >> slice & 1) != 0; }
  uint64_t carried() const noexcept { return carried_; }
  ByteView stored(size_t slice) const noexcept;
  // The bitcode or object of a slice, unpacked. TC_ERR_NOT_FOUND: the slice is not carried.
  Result<Bytes> unpack(size_t slice) const;

  // The first slice of that role and form which runs on `node`. Nothing: no slice does.
  std::optional<size_t> find(SliceRole role, SliceForm form, const TargetTriple& node) const noexcept;

  // The bundled ifunc with that name. TC_ERR_NOT_FOUND: there is none. A malformed one fails like Bundle::read().
  bool has_bundled(std::string_view name) const noexcept;
  Result<Bundle> bundled(std::string_view name) const;

  // Signatures travel with the bundle. bytes_for() writes them, merge() joins them, and bundled() gives the ifunc its
  // own.
  const std::vector<CodeSignature>& signatures() const noexcept { return signatures_; }
  // Adds a signature, unless it is there already. TC_ERR_LIMIT: the bundle has CodeSignature::most.
  Status add_signature(const CodeSignature& signature);

  // The bytes of the file, with all slices that are held.
  Bytes bytes() const { return bytes_for(carried_); }
  // The same with those held slices that are in `which`.
  Bytes bytes_for(uint64_t which) const;
  size_t size_for(uint64_t which) const noexcept;
  // The slices that a source sends to a target with this triple: those that it can run. If there is one, also bundled
  // ifuncs.
  uint64_t useful_for(const TargetTriple& node) const noexcept;
  // True: the ifunc has code for `node`, even if this copy of the bundle does not hold it.
  bool lists(const TargetTriple& node) const noexcept;
  // Adds the slices and signatures of `other` that are missing here. `other` must have the same id. Signatures beyond
  // CodeSignature::most are left out.
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

// Compression with zstd. The compressed bytes hold their unpacked size. decompress() compares it with `unpacked_size`
// before it allocates.
Result<Bytes> compress(ByteView bytes);
Result<Bytes> decompress(ByteView stored, size_t unpacked_size);

}  // namespace tc
