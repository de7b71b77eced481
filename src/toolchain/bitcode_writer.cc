// SPDX-License-Identifier: Apache-2.0
//
// Bitcode is a stream of nested blocks of records. Copying it record by record, without abbreviations, makes every
// record self-contained; then whole blocks can be left out. What may go is LLVM's to say: BitcodeReader.cpp treats
// each of the tables dropped here as optional and falls back on fixed numbers or on an empty table.
#include "toolchain/bitcode_writer.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Bitcode/LLVMBitCodes.h>
#include <llvm/Bitstream/BitstreamReader.h>
#include <llvm/Bitstream/BitstreamWriter.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <optional>
#include <set>

namespace tc::toolchain {

namespace {

using llvm::BitstreamBlockInfo;
using llvm::BitstreamCursor;
using llvm::BitstreamEntry;
using llvm::BitstreamWriter;

// Which tables of names the code refers to.
struct Used {
  std::set<uint64_t> metadata_kinds;
  bool operand_bundles = false;
  bool sync_scopes = false;
};

Used used_by(const llvm::Module& module) {
  Used used;
  llvm::SmallVector<std::pair<unsigned, llvm::MDNode*>, 8> found;
  const auto note = [&] {
    for (const auto& [kind, node] : found) used.metadata_kinds.insert(kind);
    found.clear();
  };
  for (const auto& function : module) {
    function.getAllMetadata(found);
    note();
    for (const auto& block : function)
      for (const auto& instruction : block) {
        instruction.getAllMetadata(found);
        note();
        if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction))
          used.operand_bundles |= call->hasOperandBundles();
        if (const auto scope = llvm::getAtomicSyncScopeID(&instruction); scope && *scope > llvm::SyncScope::System)
          used.sync_scopes = true;
      }
  }
  for (const auto& global : module.globals()) {
    global.getAllMetadata(found);
    note();
  }
  return used;
}

class Rewriter {
 public:
  Rewriter(llvm::StringRef bitcode, const Used& used, bool keep_abbreviations, llvm::SmallVectorImpl<char>& out)
      : bitcode_(bitcode), used_(used), keep_abbreviations_(keep_abbreviations), out_(out) {}

  // False when the stream holds something that this rewriter does not know how to copy.
  bool run() {
    BitstreamCursor cursor(bitcode_);
    BitstreamWriter writer(out_);
    for (const unsigned byte : {0x42u, 0x43u, 0xC0u, 0xDEu})  // "BC"
      writer.Emit(byte, 8);
    if (!jump(cursor, 32)) return false;
    while (!cursor.AtEndOfStream()) {
      const auto entry = next(cursor);
      if (!entry || entry->Kind != BitstreamEntry::SubBlock) return false;
      if (entry->ID == llvm::bitc::MODULE_BLOCK_ID) {
        if (!copy_block(cursor, writer, entry->ID, true)) return false;
      } else if (entry->ID == llvm::bitc::STRTAB_BLOCK_ID) {
        if (!copy_raw(cursor, writer, entry->ID)) return false;
      } else if (!skip(cursor)) {
        return false;
      }
    }
    return true;
  }

 private:
  static bool jump(BitstreamCursor& cursor, uint64_t bit) { return !llvm::errorToBool(cursor.JumpToBit(bit)); }
  static bool skip(BitstreamCursor& cursor) { return !llvm::errorToBool(cursor.SkipBlock()); }
  static std::optional<BitstreamEntry> next(BitstreamCursor& cursor) {
    auto entry = cursor.advance();
    if (!entry) {
      llvm::consumeError(entry.takeError());
      return std::nullopt;
    }
    return *entry;
  }

  template <class Number>
  static std::optional<uint64_t> number(llvm::Expected<Number> value) {
    if (value) return *value;
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }

  bool dropped(unsigned block, bool in_module) const {
    switch (block) {
      case llvm::bitc::VALUE_SYMTAB_BLOCK_ID: return in_module;  // where functions start; names are in the STRTAB
      case llvm::bitc::OPERAND_BUNDLE_TAGS_BLOCK_ID: return !used_.operand_bundles;
      case llvm::bitc::SYNC_SCOPE_NAMES_BLOCK_ID: return !used_.sync_scopes;
      case llvm::bitc::METADATA_KIND_BLOCK_ID: return used_.metadata_kinds.empty();
      default: return false;
    }
  }

  // Blocks whose records need abbreviations (blobs, offsets into themselves) are copied as they are; with
  // keep_abbreviations, so are all that use the shared ones in BLOCKINFO.
  bool raw(unsigned block) const {
    return block == llvm::bitc::METADATA_BLOCK_ID ||
           (keep_abbreviations_ && block != llvm::bitc::METADATA_KIND_BLOCK_ID);
  }

  // Both copies start behind the block's id, at its abbreviation width.
  bool copy_raw(BitstreamCursor& cursor, BitstreamWriter& writer, unsigned block) {
    const auto width = number(cursor.ReadVBR(llvm::bitc::CodeLenWidth));
    if (!jump(cursor, (cursor.GetCurrentBitNo() + 31) / 32 * 32)) return false;
    const auto words = number(cursor.Read(llvm::bitc::BlockSizeWidth));
    if (!width || !words) return false;
    writer.EmitCode(llvm::bitc::ENTER_SUBBLOCK);
    writer.EmitVBR(block, llvm::bitc::BlockIDWidth);
    writer.EmitVBR(static_cast<uint32_t>(*width), llvm::bitc::CodeLenWidth);
    writer.FlushToWord();
    writer.Emit(static_cast<uint32_t>(*words), llvm::bitc::BlockSizeWidth);
    for (uint64_t i = 0; i < *words; ++i) {
      const auto word = number(cursor.Read(32));
      if (!word) return false;
      writer.Emit(static_cast<uint32_t>(*word), 32);
    }
    return true;
  }

  bool copy_block(BitstreamCursor& cursor, BitstreamWriter& writer, unsigned block, bool in_module) {
    if (llvm::errorToBool(cursor.EnterSubBlock(block))) return false;
    writer.EnterSubblock(block, unabbreviated_width);
    while (true) {
      const auto entry = next(cursor);
      if (!entry) return false;
      switch (entry->Kind) {
        case BitstreamEntry::EndBlock: writer.ExitBlock(); return true;
        case BitstreamEntry::SubBlock:
          if (!copy_inner(cursor, writer, entry->ID, in_module)) return false;
          break;
        case BitstreamEntry::Record:
          if (!copy_record(cursor, writer, block, entry->ID)) return false;
          break;
        case BitstreamEntry::Error: return false;
      }
    }
  }

  bool copy_inner(BitstreamCursor& cursor, BitstreamWriter& writer, unsigned block, bool in_module) {
    if (block == llvm::bitc::BLOCKINFO_BLOCK_ID && !keep_abbreviations_) {
      auto info = cursor.ReadBlockInfoBlock();
      if (!info) return !llvm::errorToBool(info.takeError()) && false;
      if (!*info) return false;
      block_info_ = std::move(**info);
      cursor.setBlockInfo(&block_info_);
      return true;
    }
    if (dropped(block, in_module)) return skip(cursor);
    return raw(block) ? copy_raw(cursor, writer, block) : copy_block(cursor, writer, block, false);
  }

  bool copy_record(BitstreamCursor& cursor, BitstreamWriter& writer, unsigned block, unsigned id) {
    llvm::SmallVector<uint64_t, 64> values;
    llvm::StringRef blob;
    const auto code = number(cursor.readRecord(id, values, &blob));
    if (!code || !blob.empty()) return false;
    if (block == llvm::bitc::MODULE_BLOCK_ID &&
        (*code == llvm::bitc::MODULE_CODE_VSTOFFSET || *code == llvm::bitc::MODULE_CODE_SOURCE_FILENAME))
      return true;
    if (block == llvm::bitc::METADATA_KIND_BLOCK_ID && (values.empty() || !used_.metadata_kinds.contains(values[0])))
      return true;
    writer.EmitRecord(static_cast<unsigned>(*code), values);
    return true;
  }

  static constexpr unsigned unabbreviated_width = 2;  // END_BLOCK, ENTER_SUBBLOCK, UNABBREV_RECORD

  llvm::StringRef bitcode_;
  const Used& used_;
  bool keep_abbreviations_;
  llvm::SmallVectorImpl<char>& out_;
  BitstreamBlockInfo block_info_;
};

Bytes to_bytes(llvm::StringRef text) {
  const auto view = as_bytes(std::string_view(text.data(), text.size()));
  return Bytes(view.begin(), view.end());
}

std::optional<std::string> read_back(llvm::StringRef bitcode) {
  llvm::LLVMContext context;
  auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bitcode, "read back"), context);
  if (!module) {
    llvm::consumeError(module.takeError());
    return std::nullopt;
  }
  (*module)->setSourceFileName("");
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream, nullptr);
  return text;
}

}  // namespace

Bytes write_bitcode(const llvm::Module& module) {
  llvm::SmallVector<char, 0> plain;
  llvm::BitcodeWriter writer(plain);
  writer.writeModule(module);
  writer.writeStrtab();
  return to_bytes({plain.data(), plain.size()});
}

Bytes write_smallest_bitcode(const llvm::Module& module) {
  const auto plain = write_bitcode(module);
  const llvm::StringRef plain_text(as_text(plain));
  const auto wanted = read_back(plain_text);
  const auto used = used_by(module);
  Bytes smallest = plain;
  for (const bool keep_abbreviations : {false, true}) {
    llvm::SmallVector<char, 0> out;
    if (!Rewriter(plain_text, used, keep_abbreviations, out).run() || out.size() >= smallest.size()) continue;
    const llvm::StringRef text(out.data(), out.size());
    if (const auto got = read_back(text); got && got == wanted) smallest = to_bytes(text);
  }
  return smallest;
}

}  // namespace tc::toolchain
