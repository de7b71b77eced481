// SPDX-License-Identifier: Apache-2.0
//
// The ifuncs that this process can send, by name and by content (main paper, section III.A: "registered using its name,
// and a handle is returned"), with the functions that build their payloads.
//
// Thread: the node's.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "wire/bundle.h"

namespace tc::source {

// The functions of an ifunc that run at its source and build payloads. The 2021 paper and the 2022 paper have different
// forms. The manifest says which form an ifunc has. This folder does not load code: the caller loads it and gives the
// addresses.
//
// The papers' signatures take `void* source_args`. These take `const void*`, because a node promises not to write to
// them. Every calling convention passes both alike.
struct PayloadFunctions {
  using GetMaxSize = size_t (*)(const void* source_args, size_t size);
  using Init2021 = int (*)(void* payload, size_t payload_size, const void* source_args, size_t size);
  using Init2022 = int (*)(const void* source_args, size_t size, void* payload, size_t* payload_size);
  GetMaxSize max_size = nullptr;  // payload_get_max_size, or payload_bound of the 2022 form
  Init2021 init_2021 = nullptr;
  Init2022 init_2022 = nullptr;
  std::shared_ptr<void> keep_alive;  // owns the code

  // There are none: source args are the payload.
  bool empty() const noexcept { return max_size == nullptr && init_2021 == nullptr && init_2022 == nullptr; }
};

bool has_payload_functions(const Manifest& manifest) noexcept;

// Takes the functions out of loaded code. `address_of` returns a function by its name in the slice (wire/abi_names.h),
// or null. `code` owns the loaded code.
PayloadFunctions bind_payload_functions(const Manifest& manifest, std::shared_ptr<void> code,
                                        const std::function<void*(const char* name)>& address_of);

// A registered ifunc. Messages and link tables hold it, too, so it lives as long as they need it.
struct Ifunc {
  Bundle bundle;
  uint32_t index = 0;  // dense number in this node; links use it to find their number for the code
  PayloadFunctions functions;

  const std::string& name() const noexcept { return bundle.manifest().name; }
};

class Registry {
 public:
  // find_file() searches these directories in order.
  explicit Registry(std::vector<std::filesystem::path> path) : path_(std::move(path)) {}

  // Finds NAME.ifunc along the path. A name with a slash or the ending .ifunc is the file itself. TC_ERR_NOT_FOUND
  // lists the places that were tried.
  Result<std::filesystem::path> find_file(const std::string& name) const;

  // Returns the handle of this content, and makes one if it is not registered yet. From now on, the name finds this
  // content. Each add() needs one remove().
  std::shared_ptr<Ifunc> add(Bundle bundle);
  void remove(const std::shared_ptr<Ifunc>& ifunc);

  // The ifunc that was registered last under this name, for code that injects by name. Null: not registered.
  std::shared_ptr<Ifunc> find(const std::string& name) const;

  // The ifunc with this content id; its bundle has the slices of every processor. Null: not registered.
  std::shared_ptr<Ifunc> find(const ContentId& id) const;

  // The number of indices handed out so far. Every Ifunc::index is smaller.
  uint32_t size() const noexcept { return next_index_; }

 private:
  struct Entry {
    std::shared_ptr<Ifunc> ifunc;
    uint32_t registrations = 0;
  };
  std::vector<std::filesystem::path> path_;
  std::unordered_map<ContentId, Entry> by_content_;
  std::unordered_map<std::string, std::shared_ptr<Ifunc>> by_name_;
  uint32_t next_index_ = 0;
};

}  // namespace tc::source
