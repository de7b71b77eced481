// SPDX-License-Identifier: Apache-2.0
//
// The ifuncs that this process can send, by name and by content (main paper, section III.A: "registered using
// its name, and a handle is returned").
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

// The papers' signatures take `void* source_args`. These take `const void*`, because this node promises not to write to
// them; every calling convention passes both alike.
struct PayloadFunctions {
  using GetMaxSize = size_t (*)(const void* source_args, size_t size);
  using Init2021 = int (*)(void* payload, size_t payload_size, const void* source_args, size_t size);
  using Init2022 = int (*)(const void* source_args, size_t size, void* payload, size_t* payload_size);
  GetMaxSize max_size = nullptr;  // payload_get_max_size, or payload_bound of the 2022 form
  Init2021 init_2021 = nullptr;
  Init2022 init_2022 = nullptr;
  std::shared_ptr<void> keep_alive;  // owns the code
};

bool has_payload_functions(const Manifest& manifest) noexcept;

// Takes the functions out of loaded code. `address_of` finds a function by its name in the slice (wire/abi_names.h),
// null when there is none; `code` owns the loaded code.
PayloadFunctions bind_payload_functions(const Manifest& manifest, std::shared_ptr<void> code,
                                        const std::function<void*(const char* name)>& address_of);

// One registered ifunc. Messages and link tables hold it too, so it outlives its registration while they need it.
struct Ifunc {
  Bundle bundle;
  uint32_t index = 0;  // dense number in this node: links find their number for the code by it
  PayloadFunctions functions;

  const std::string& name() const noexcept { return bundle.manifest().name; }
};

class Registry {
 public:
  // Directories searched by find_file, in order.
  explicit Registry(std::vector<std::filesystem::path> path) : path_(std::move(path)) {}

  // NAME.ifunc along the path; a name with a slash or the ending .ifunc is a file itself. TC_ERR_NOT_FOUND lists
  // the places tried.
  Result<std::filesystem::path> find_file(const std::string& name) const;

  // The handle for this content: an existing one when it is registered already, else a new one. The name now
  // leads to this content. Each add() wants one remove().
  std::shared_ptr<Ifunc> add(Bundle bundle);
  void remove(const std::shared_ptr<Ifunc>& ifunc);

  // By label, for code that injects by name: what was registered last. Null when there is none.
  std::shared_ptr<Ifunc> find(const std::string& name) const;

  // By content: the whole bundle, with the slices of every processor. Null when it is not registered here.
  std::shared_ptr<Ifunc> find(const ContentId& id) const;

  // Indices handed out so far; every Ifunc::index is below.
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
