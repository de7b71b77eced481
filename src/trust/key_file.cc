// SPDX-License-Identifier: Apache-2.0
//
// The text of a key is "threechains-private-key 1 " and the seed in 43 characters of URL-safe base64. All copies of the
// seed are wiped.
#include "trust/key_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "trust/grant.h"
#include "trust/key_pair.h"
#include "trust/private_file.h"

namespace tc::trust {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "threechains-private-key 1 ";
constexpr size_t seed_text_bytes = 43;
constexpr size_t text_bytes = prefix.size() + seed_text_bytes + 1;

// Text that its destructor wipes.
struct SecretText {
  std::array<char, text_bytes + 1> bytes{};
  size_t size = 0;
  SecretText() = default;
  SecretText(const SecretText&) = delete;
  ~SecretText() { wipe(bytes.data(), bytes.size()); }
};

struct Seed {
  std::array<std::byte, KeyPair::seed_bytes> bytes{};
  Seed() = default;
  Seed(const Seed&) = delete;
  ~Seed() { wipe(bytes.data(), bytes.size()); }
};

// Reads up to one byte more than a key has, so that a longer file is noticed.
Status read_into(SecretText& text, int fd, const fs::path& file) {
  while (text.size < text.bytes.size()) {
    const auto got = ::read(fd, text.bytes.data() + text.size, text.bytes.size() - text.size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(TC_ERR_IO, "cannot read {}: {}", file.string(), system_words(errno));
    if (got == 0) break;
    text.size += static_cast<size_t>(got);
  }
  return {};
}

// The message does not repeat what the file holds: it may be a private key with a typing error.
std::unexpected<Error> no_key(const fs::path& file, std::string_view why) {
  return fail(TC_ERR_MALFORMED, "{} is no private key: {}", file.string(), why);
}

}  // namespace

Result<KeyPair> parse_private_key(std::string_view text, const fs::path& file) {
  if (!text.starts_with(prefix)) return no_key(file, fmt::format("it does not begin with '{}'", prefix));
  if (text.size() != text_bytes || text.back() != '\n')
    return no_key(file, fmt::format("a key is one line of {} bytes, and this is {}", text_bytes,
                                    text.size() > text_bytes ? "more" : fmt::format("{}", text.size())));
  Seed seed;
  if (!from_base64(text.substr(prefix.size(), seed_text_bytes), seed.bytes))
    return no_key(file, fmt::format("what follows is not {} characters of URL-safe base64", seed_text_bytes));
  return KeyPair::from_seed(seed.bytes);
}

Result<KeyPair> read_key_file(const fs::path& file) {
  TC_ASSIGN(const auto fd, open_guarded(file, Guard::secret));
  SecretText text;
  TC_CHECK(read_into(text, fd.get(), file));
  return parse_private_key({text.bytes.data(), text.size}, file);
}

Status write_key_file(const fs::path& file, const KeyPair& key) {
  auto seed = to_base64(key.seed());
  SecretText text;
  text.size = text_bytes;
  auto* at = std::ranges::copy(prefix, text.bytes.data()).out;
  at = std::ranges::copy(seed, at).out;
  *at = '\n';
  wipe(seed.data(), seed.size());
  return write_guarded(file, {text.bytes.data(), text.size}, Replace::only_new);
}

Result<KeyPair> find_key(std::string_view name_or_path) {
  if (name_or_path.find('/') != std::string_view::npos) return read_key_file(name_or_path);
  TC_ASSIGN(const auto file, key_path(name_or_path));
  auto key = read_key_file(file);
  if (!key && key.error().code == TC_ERR_NOT_FOUND)
    return fail(TC_ERR_NOT_FOUND, "there is no key '{}': {} is not there; `ifunc key new {}` makes it", name_or_path,
                file.string(), name_or_path);
  return key;
}

Result<std::vector<std::string>> list_keys() {
  TC_ASSIGN(const auto folder, home());
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder / "keys", error), end; !error && at != end; at.increment(error)) {
    auto name = at->path().filename().string();
    // A link to a key counts as a key. A file that is being written at this moment does not.
    if (is_key_name(name) && !name.ends_with(".new") && at->is_regular_file(error)) names.push_back(std::move(name));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return fail(TC_ERR_IO, "cannot list {}: {}", (folder / "keys").string(), error.message());
  std::ranges::sort(names);
  return names;
}

bool is_own_key(const PublicKey& key) {
  const auto names = list_keys();
  return names && std::ranges::any_of(*names, [&](const auto& name) {
           const auto own = find_key(name);
           return own && own->public_key() == key;
         });
}

namespace {

// Null: the variable is not set, or is empty. A set-user-ID program ignores all variables, because its caller sets
// them.
const char* variable(const char* name) noexcept {
  const char* const value = ::secure_getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

Result<std::filesystem::path> home() {
  if (const auto* const own = variable("THREECHAINS_HOME")) return std::filesystem::path(own);
  if (const auto* const config = variable("XDG_CONFIG_HOME")) return std::filesystem::path(config) / "threechains";
  if (const auto* const user = variable("HOME")) return std::filesystem::path(user) / ".config" / "threechains";
  return fail(TC_ERR_NOT_FOUND,
              "no variable says where keys are kept: set THREECHAINS_HOME, XDG_CONFIG_HOME or HOME to a folder");
}

Result<std::filesystem::path> key_path(std::string_view name) {
  if (!is_key_name(name))
    return fail(TC_ERR_INVALID,
                "'{}' is no name of a key: one is 1 to 64 letters, digits, '-', '_' and '.', and does not begin with "
                "'.'",
                name.substr(0, 80));
  TC_ASSIGN(const auto folder, home());
  return folder / "keys" / name;
}

}  // namespace tc::trust
