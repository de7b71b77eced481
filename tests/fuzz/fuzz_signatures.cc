// SPDX-License-Identifier: Apache-2.0
//
// Any bytes behind a good bundle that bundles another, as its signatures. The oracle: what is understood is written as it
// was, and nobody has signed who did not.
#include <algorithm>

#include "read_frames.h"
#include "trust/code_signature.h"
#include "trust/permission.h"
#include "trust/testing/keys.h"
#include "wire/testing/bundles.h"

using namespace tc;  // NOLINT

namespace {

// Nobody has signed anything with this key.
trust::Rules rules_with_unused_key() {
  trust::Rules rules;
  rules.keyring = trust::Keyring::parse("ana " + trust::testing::public_key(9).text() + "\n", "keyring").value();
  return rules;
}

void check(const Bundle& bundle, ByteView bytes) {
  static const auto rules = rules_with_unused_key();
  const auto rights = trust::Rights::by_line(rules.keyring.grants().front());
  fuzz::expect(std::ranges::equal(bundle.bytes(), bytes) && bundle.size_for(bundle.carried()) == bytes.size());
  fuzz::expect(!trust::rights_of_code(rules, rights, nullptr, bundle, true, {}));
  auto twice = bundle;
  twice.merge(bundle);
  fuzz::expect(twice.signatures() == bundle.signatures());
  const auto inner = bundle.bundled("golden");
  fuzz::expect(inner.has_value());
  fuzz::expect(!trust::rights_of_code(rules, rights, nullptr, *inner, true, {}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto good = testing::with_bundled().bytes();
  auto bytes = good;
  const ByteView behind(reinterpret_cast<const std::byte*>(data), size);
  bytes.insert(bytes.end(), behind.begin(), behind.end());
  if (const auto bundle = Bundle::read(bytes)) check(*bundle, bytes);
  return 0;
}
