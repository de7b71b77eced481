// SPDX-License-Identifier: Apache-2.0
#include "trust_cost/keys.h"

#include "base/file.h"
#include "trust/key_file.h"
#include "trust/keyring.h"

namespace tc::bench {

Result<BenchKeys> BenchKeys::make() {
  TC_ASSIGN(auto shared, SharedKey::make());
  TC_ASSIGN(auto directory, TemporaryDirectory::create());
  TC_ASSIGN(auto author, trust::KeyPair::fresh());
  TC_CHECK(trust::write_key_file(directory.file("author"), author));
  TC_ASSIGN(const auto target, trust::read_key_file(shared_key_file()));
  // The author connects to the target, and must know it as well.
  for (const auto& [name, key] : {std::pair{"author", author.public_key()}, std::pair{"target", target.public_key()}}) {
    trust::Grant grant;
    grant.name = name;
    grant.key = key;
    TC_CHECK(trust::add_to_keyring(directory.file("keyring"), grant));
  }
  return BenchKeys(std::move(shared), std::move(directory), std::move(author));
}

}  // namespace tc::bench
