// SPDX-License-Identifier: Apache-2.0
//
// Any text as a keyring. The oracle: each line that is understood is written as a line that means the same.
#include "base/bytes.h"
#include "read_frames.h"
#include "trust/keyring.h"

using namespace tc;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto keyring = trust::Keyring::parse(text, "keyring");
  if (!keyring) {
    fuzz::expect(!keyring.error().message.empty());
    return 0;
  }
  for (const auto& grant : keyring->grants()) {
    fuzz::expect(keyring->find(grant.key) == &grant && keyring->find(grant.name) == &grant);
    const auto line = trust::to_line(grant);
    const auto again = trust::parse_grant(line);
    fuzz::expect(again.has_value() && trust::to_line(*again) == line);
    fuzz::expect(again->write.contains("x") == grant.write.contains("x") && again->until == grant.until);
  }
  return 0;
}
