// SPDX-License-Identifier: Apache-2.0
//
// The keys of `ifunc bench trust`: that of the target and of its owner (common/shared_key.h), and that of an author, whom the
// target's keyring lets run signed code only. Thread: the one that measures.
#pragma once

#include "base/file.h"
#include "common/shared_key.h"
#include "trust/key_pair.h"

namespace tc::bench {

class BenchKeys {
 public:
  static Result<BenchKeys> make();
  const trust::KeyPair& author() const noexcept { return author_; }
  std::string author_file() const { return directory_.file("author"); }
  std::string keyring_file() const { return directory_.file("keyring"); }

 private:
  BenchKeys(SharedKey shared, TemporaryDirectory directory, trust::KeyPair author)
      : shared_(std::move(shared)), directory_(std::move(directory)), author_(std::move(author)) {}
  SharedKey shared_;
  TemporaryDirectory directory_;
  trust::KeyPair author_;
};

}  // namespace tc::bench
