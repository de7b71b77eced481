// SPDX-License-Identifier: Apache-2.0
#include "target/jit/frame_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace tc::target::jit {

namespace {

// How addresses are written, of the DWARF exception header encodings (LSB, "DWARF Extensions"): the low half says with how many
// bytes, the high half what is to be added.
enum : uint8_t {
  absolute = 0x00,  // the width of a pointer
  udata2 = 0x02,
  udata4 = 0x03,
  udata8 = 0x04,
  is_signed = 0x08,
  width_bits = 0x07,
  relative = 0x10,
  indirect = 0x80,
};

std::unexpected<Error> refuse(size_t at, std::string_view why) {
  return fail(TC_ERR_COMPILE, "the object's frame table is not one that compilers write: at byte {}, {}", at, why);
}

uint64_t address_of(const std::byte* at) noexcept { return reinterpret_cast<uintptr_t>(at); }

void skip_leb(Reader& in) noexcept {
  while (in.ok() && (in.u8() & 0x80) != 0) {
  }
}

// A number of that width; nothing: an encoding that compilers do not use here.
std::optional<uint64_t> read_number(Reader& in, uint8_t encoding) noexcept {
  const bool extends = (encoding & is_signed) != 0;
  switch (encoding & width_bits) {
    case absolute:
    case udata8: return in.u64();
    case udata2: {
      const auto value = in.u16();
      return extends ? static_cast<uint64_t>(static_cast<int16_t>(value)) : value;
    }
    case udata4: {
      const auto value = in.u32();
      return extends ? static_cast<uint64_t>(static_cast<int32_t>(value)) : value;
    }
    default: return std::nullopt;
  }
}

// Is it an address, or the distance to it from where it is written?
bool is_plain(uint8_t encoding) noexcept { return (encoding & ~(width_bits | is_signed | relative)) == 0; }

// In this order compilers write the letters. Some unwinders stop to read at a letter that they do not expect, and take the entries
// for something else.
constexpr std::string_view known_augmentations[] = {"",     "zR",   "zLR",   "zPR", "zPLR", "zRS",
                                                    "zLRS", "zPRS", "zPLRS", "zRB", "zPLRB"};

// Behind the first two words of a common part. Gives how its entries write addresses.
Result<uint8_t> read_encoding(Reader& in, size_t at) {
  const auto version = in.u8();
  if (version != 1 && version != 3) return refuse(at, fmt::format("version {} when 1 and 3 are known", version));
  std::string letters;
  for (char letter; (letter = static_cast<char>(in.u8())) != 0;) letters += letter;
  skip_leb(in);  // alignment of code
  skip_leb(in);  // alignment of data
  version == 1 ? in.skip(1) : skip_leb(in);
  if (std::ranges::find(known_augmentations, letters) == std::end(known_augmentations))
    return refuse(at, fmt::format("augmentation '{}'", letters));
  uint8_t encoding = absolute;
  if (letters.starts_with('z')) {
    skip_leb(in);
    if (letters.contains('P'))
      if (const auto how = in.u8(); !is_plain(how & ~indirect) || !read_number(in, how))
        return refuse(at, fmt::format("a personality of the encoding {:#x}", how));
    if (letters.contains('L')) in.skip(1);
    encoding = in.u8();
  }
  if (!is_plain(encoding)) return refuse(at, fmt::format("addresses of the encoding {:#x}", encoding));
  if (!in.ok()) return refuse(at, "a common part that is cut short");
  return encoding;
}

// Behind the first two words of an entry, which begins at `at` of the table.
Status check_entry(Reader& in, size_t at, const std::byte* place, uint8_t encoding, std::span<const std::byte> text) {
  auto begin = read_number(in, encoding);
  const auto size = read_number(in, encoding & (width_bits | is_signed));
  if (!begin || !size || !in.ok()) return refuse(at, "an entry that is cut short");
  if ((encoding & relative) != 0) *begin += address_of(place);
  const auto text_begin = address_of(text.data());
  if (*begin >= text_begin && *size <= text.size() && *begin - text_begin <= text.size() - *size) return {};
  return fail(
      TC_ERR_COMPILE,
      "the object's frame table speaks of {} bytes at {:#x} when its code has {} bytes at {:#x}: it may describe "
      "no other code than its own",
      *size, *begin, text.size(), text_begin);
}

}  // namespace

Status check_frames(std::span<const std::byte> table, std::span<const std::byte> text) {
  std::map<size_t, uint8_t> encodings;  // of the common parts, by where they begin
  for (size_t at = 0;;) {
    Reader in(table.subspan(at));
    const auto length = in.u32();
    if (!in.ok()) return refuse(at, "it does not end with a zero");
    if (length == 0) return {};
    if (length < 4 || length > in.remaining()) return refuse(at, fmt::format("a length of {}", length));
    Reader record(table.subspan(at + sizeof length, length));
    const auto back = record.u32();  // to the common part, from here; 0: this is one
    if (back == 0) {
      TC_ASSIGN(encodings[at], read_encoding(record, at));
    } else {
      const auto common = encodings.find(at + sizeof length - back);
      if (common == encodings.end()) return refuse(at, "an entry without a common part before it");
      const auto* const place = table.data() + at + sizeof length + sizeof back;
      TC_CHECK(check_entry(record, at, place, common->second, text));
    }
    at += sizeof length + length;
  }
}

}  // namespace tc::target::jit
