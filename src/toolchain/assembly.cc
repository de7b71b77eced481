// SPDX-License-Identifier: Apache-2.0
#include "toolchain/assembly.h"

#include <llvm/ADT/ArrayRef.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <cstring>
#include <map>
#include <memory>

#include "target/elf_image.h"
#include "target/jit/compiler.h"
#include "toolchain/codegen.h"

namespace tc::toolchain {

namespace {

using target::Effort;
using target::jit::Compiler;
using target::jit::Host;

// Everything that LLVM's disassembler wants, in the order in which it must die.
struct Machine {
  std::unique_ptr<const llvm::MCRegisterInfo> registers;
  std::unique_ptr<const llvm::MCAsmInfo> assembly;
  std::unique_ptr<const llvm::MCInstrInfo> instructions;
  std::unique_ptr<const llvm::MCSubtargetInfo> cpu;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<const llvm::MCDisassembler> disassembler;
  std::unique_ptr<const llvm::MCInstrAnalysis> analysis;
  std::unique_ptr<llvm::MCInstPrinter> printer;
  size_t smallest = 1;           // bytes of an instruction
  bool counts_from_end = false;  // distances of branches, for the printer: from the next instruction
};

Result<Machine> machine_for(const TargetTriple& wanted) {
  const llvm::Triple triple(llvm::Triple::normalize(wanted.text));
  std::string words;
  const auto* const target = llvm::TargetRegistry::lookupTarget(triple, words);
  if (target == nullptr) return fail(TC_ERR_UNSUPPORTED, "LLVM cannot disassemble {}: {}", wanted.text, words);
  // Whatever the CPU of the reader: all instructions there are, where LLVM has a name for that.
  const char* const cpu = triple.isAArch64() ? "generic" : "";
  const char* const features = triple.isAArch64() ? "+all" : triple.isRISCV64() ? "+m,+a,+f,+d,+c" : "";
  Machine m;
  const llvm::MCTargetOptions options;
  m.registers.reset(target->createMCRegInfo(triple));
  if (m.registers) m.assembly.reset(target->createMCAsmInfo(*m.registers, triple, options));
  m.instructions.reset(target->createMCInstrInfo());
  m.cpu.reset(target->createMCSubtargetInfo(triple, cpu, features));
  if (m.assembly && m.instructions && m.cpu) {
    m.context = std::make_unique<llvm::MCContext>(triple, m.assembly.get(), m.registers.get(), m.cpu.get());
    m.disassembler.reset(target->createMCDisassembler(*m.cpu, *m.context));
    m.analysis.reset(target->createMCInstrAnalysis(m.instructions.get()));
    m.printer.reset(target->createMCInstPrinter(triple, m.assembly->getAssemblerDialect(), *m.assembly, *m.instructions,
                                                *m.registers));
  }
  if (!m.disassembler || !m.printer) return fail(TC_ERR_UNSUPPORTED, "LLVM cannot disassemble {}", wanted.text);
  m.printer->setPrintImmHex(true);
  m.printer->setPrintBranchImmAsAddress(true);
  m.counts_from_end = triple.isX86();
  m.smallest = m.assembly->getMinInstAlignment();
  return m;
}

class Listing {
 public:
  // `text`: the code's half, up to what cannot be code.
  Listing(const Machine& machine, ByteView text) : machine_(machine), text_(text) {}

  void add_entry(uint64_t address, std::string name) {
    labels_.emplace(address, std::move(name));
    pending_.push_back(address);
  }

  // Follows branches from the entries: so that constants in front of the code are not taken for code.
  void follow() {
    while (!pending_.empty()) {
      auto address = pending_.back();
      pending_.pop_back();
      for (auto one = decode(address); one && reached_.emplace(address, true).second; one = decode(address)) {
        uint64_t target = 0;
        if (machine_.analysis && machine_.analysis->evaluateBranch(one->instruction, address, one->size, target) &&
            target < text_.size()) {
          labels_.emplace(target, fmt::format("L{:x}", target));
          pending_.push_back(target);
        }
        if (machine_.analysis && machine_.analysis->isBarrier(one->instruction)) break;
        address += one->size;
      }
    }
  }

  // Onward from there without a break: behind a computed jump lies code that nothing seems to lead to.
  std::string print() const {
    if (reached_.empty()) return {};
    std::string out;
    for (uint64_t address = reached_.begin()->first; address < text_.size();) {
      if (const auto label = labels_.find(address); label != labels_.end()) out += label->second + ":\n";
      const auto one = decode(address);
      out += fmt::format("{:8x}: ", address);
      out += one ? print(*one, address) : bytes_at(address);
      out += '\n';
      address += one ? one->size : machine_.smallest;
    }
    return out;
  }

 private:
  struct One {
    llvm::MCInst instruction;
    uint64_t size = 0;
  };

  std::optional<One> decode(uint64_t address) const {
    if (address >= text_.size()) return std::nullopt;
    const auto rest = text_.subspan(address);
    One one;
    const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t*>(rest.data()), rest.size());
    if (machine_.disassembler->getInstruction(one.instruction, one.size, bytes, address, llvm::nulls()) !=
            llvm::MCDisassembler::Success ||
        one.size == 0)
      return std::nullopt;
    return one;
  }

  std::string print(const One& one, uint64_t address) const {
    std::string words;
    llvm::raw_string_ostream stream(words);
    const auto origin = machine_.counts_from_end ? address + one.size : address;
    machine_.printer->printInst(&one.instruction, origin, "", *machine_.cpu, stream);
    return words;
  }

  std::string bytes_at(uint64_t address) const {
    std::string words = "\t.byte";
    for (size_t i = address; i < address + machine_.smallest && i < text_.size(); ++i)
      words += fmt::format(" {:#04x}", std::to_integer<unsigned>(text_[i]));
    return words;
  }

  const Machine& machine_;
  const ByteView text_;
  std::map<uint64_t, std::string> labels_;
  std::map<uint64_t, bool> reached_;
  std::vector<uint64_t> pending_;
};

// The linker's table for the loader stands behind the code (link.cc). ElfImage checked the headers.
ByteView up_to_the_table(ByteView object, ByteView text) {
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, object.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_DYNAMIC && segment.p_vaddr < text.size()) return text.first(segment.p_vaddr);
  }
  return text;
}

// An object slice as text. It has neither sections nor names besides its entry points, so tools that expect those
// (llvm-objdump -d) show nothing of it. One instruction a line: its address in the image, what it says; entry points and
// targets of branches are labels. The text runs from the first instruction that can be reached to the end of the code, with
// what is no instruction as bytes. Errors are the loader's about the object, or TC_ERR_UNSUPPORTED: LLVM has no disassembler.
Result<std::string> disassemble(ByteView object, const TargetTriple& triple) {
  TC_ASSIGN(const auto image, target::ElfImage::read(object, triple.arch));
  TC_ASSIGN(const auto machine, machine_for(triple));
  Listing listing(machine, up_to_the_table(object, image.text().bytes));
  for (size_t i = 0; i < image.symbol_count(); ++i) {
    TC_ASSIGN(const auto symbol, image.symbol(i));
    if (const auto code = image.find_code(symbol.name); symbol.defined && code)
      listing.add_entry(*code, std::string(symbol.name));
  }
  listing.follow();
  return listing.print();
}

Result<Host> host_for(const TargetTriple& triple, const std::string& cpu) {
  if (cpu == "native") {
    if (!triple.runs_on(TargetTriple::host()))
      return fail(TC_ERR_INVALID, "--cpu native is this machine's, which is {} and not {}", TargetTriple::host().text,
                  triple.text);
    return Host::detect();
  }
  if (!cpu.empty()) return Host::named(triple.text, cpu, "");
  const auto baseline = baseline_for(triple);
  if (!baseline)
    return fail(TC_ERR_INVALID, "no baseline CPU is named for {}: give --cpu ('--cpu list' prints what there is)",
                triple.text);
  return Host::named(triple.text, baseline->cpu, baseline->features);
}

std::string title(const Bundle& bundle, size_t slice, const std::string& what) {
  return fmt::format("# {}, slice {}: {}\n", bundle.manifest().name, slice, what);
}

Result<std::string> compiled(const Bundle& bundle, size_t slice, const Host& host) {
  TC_ASSIGN(const auto bitcode, bundle.unpack(slice));
  Compiler compiler(host, Effort::tuned, llvm::CodeGenFileType::AssemblyFile);
  TC_ASSIGN(const auto text, compiler.compile(bitcode, target::Assembly::allowed, bundle.manifest().name));
  return title(bundle, slice, fmt::format("bitcode, tuned for {} ({})", host.cpu, host.triple)) +
         std::string(as_text(text));
}

Result<std::string> disassembled(const Bundle& bundle, size_t number) {
  TC_ASSIGN(const auto object, bundle.unpack(number));
  const auto& slice = bundle.manifest().slices[number];
  TC_ASSIGN(const auto text, disassemble(object, slice.triple));
  return title(bundle, number, fmt::format("machine code for {} ({})", slice.cpu, slice.triple.text)) + text;
}

Result<TargetTriple> wanted_triple(const std::string& text) {
  initialize_targets();
  if (text.empty()) return TargetTriple::host();
  TC_CHECK(check_triple(text));
  return TargetTriple::parse(text);
}

}  // namespace

Result<std::string> assembly(const Bundle& bundle, const AssemblyRequest& request) {
  TC_ASSIGN(const auto triple, wanted_triple(request.triple));
  const auto bitcode = bundle.find(SliceRole::target, SliceForm::bitcode, triple);
  const auto object = bundle.find(SliceRole::target, SliceForm::object, triple);
  if (!bitcode && !object)
    return fail(TC_ERR_NO_SLICE, "the bundle holds no code for {}; name another --target", triple.text);
  if (object && request.cpu.empty()) return disassembled(bundle, *object);
  if (!bitcode)
    return fail(TC_ERR_NO_SLICE,
                "the bundle holds no bitcode for {}, only machine code, which is the same for every CPU", triple.text);
  TC_ASSIGN(const auto host, host_for(triple, request.cpu));
  return compiled(bundle, *bitcode, host);
}

Result<std::string> known_cpus(const std::string& text) {
  TC_ASSIGN(const auto triple, wanted_triple(text));
  TC_ASSIGN(const auto host, Host::named(triple.text, "", ""));
  TC_ASSIGN(const auto machine, host.machine(Effort::tuned));
  std::string names;
  for (const auto& cpu : machine->getMCSubtargetInfo()->getAllProcessorDescriptions()) {
    names += cpu.Key;
    names += '\n';
  }
  return names;
}

}  // namespace tc::toolchain
