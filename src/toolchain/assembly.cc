// SPDX-License-Identifier: Apache-2.0
#include "toolchain/assembly.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include "target/jit/compiler.h"
#include "toolchain/codegen.h"
#include "toolchain/disassembly.h"

namespace tc::toolchain {

namespace {

using target::Effort;
using target::jit::Compiler;
using target::jit::Host;

struct Wanted {
  TargetTriple triple;
  Host host;
};

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
  TC_ASSIGN(const auto text, compiler.compile(bitcode, bundle.manifest().name));
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
