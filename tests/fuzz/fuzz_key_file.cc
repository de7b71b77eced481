// SPDX-License-Identifier: Apache-2.0
//
// Any text as a private key and as a public one. The oracle: one key has one text.
#include "base/bytes.h"
#include "read_frames.h"
#include "trust/key_file.h"
#include "trust/key_pair.h"

using namespace tc;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto key = trust::parse_private_key(text, "key"))
    fuzz::expect(text == "threechains-private-key 1 " + trust::to_base64(key->seed()) + "\n");
  if (const auto key = trust::PublicKey::parse(text)) fuzz::expect(key->text() == text);
  return 0;
}
