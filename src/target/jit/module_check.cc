// SPDX-License-Identifier: Apache-2.0
#include "target/jit/module_check.h"

#include <llvm/IR/DataLayout.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/TargetParser/Triple.h>

namespace tc::target::jit {

namespace {

// Triples are compared by what matters to machine code. An empty one (some front ends leave it out) fits.
Status check_triple(const llvm::Triple& module, const llvm::Triple& host) {
  if (module.getArch() == llvm::Triple::UnknownArch && module.str().empty()) return {};
  if (module.getArch() != host.getArch())
    return fail(TC_ERR_COMPILE, "bitcode is for {} when this node is {}", module.getArchName().str(),
                host.getArchName().str());
  if (module.getOS() != llvm::Triple::UnknownOS && !module.isOSLinux())
    return fail(TC_ERR_COMPILE, "bitcode is for {} when this node runs {}", module.getOSName().str(),
                host.getOSName().str());
  return {};
}

// The layout's text differs between front ends and their versions (Julia adds address spaces of its own) where the
// layout in memory does not; what could differ in memory is compared.
Status check_layout(const llvm::Module& module, const llvm::DataLayout& host) {
  const auto& layout = module.getDataLayout();
  if (module.getDataLayoutStr().empty()) return {};
  if (layout.isLittleEndian() != host.isLittleEndian())
    return fail(TC_ERR_COMPILE, "bitcode is {}-endian when this node is {}-endian",
                layout.isLittleEndian() ? "little" : "big", host.isLittleEndian() ? "little" : "big");
  if (layout.getPointerSizeInBits() != host.getPointerSizeInBits())
    return fail(TC_ERR_COMPILE, "bitcode has {}-bit pointers when this node has {}-bit ones",
                layout.getPointerSizeInBits(), host.getPointerSizeInBits());
  auto& context = module.getContext();
  for (auto* type : {static_cast<llvm::Type*>(llvm::Type::getInt64Ty(context)), llvm::Type::getDoubleTy(context),
                     static_cast<llvm::Type*>(llvm::Type::getInt128Ty(context))}) {
    const auto theirs = layout.getABITypeAlign(type).value();
    const auto ours = host.getABITypeAlign(type).value();
    if (theirs != ours)
      return fail(TC_ERR_COMPILE, "bitcode aligns {}-bit values to {} bytes when this node aligns them to {}",
                  host.getTypeSizeInBits(type).getFixedValue(), theirs, ours);
  }
  return {};
}

Status check_globals(const llvm::Module& module) {
  for (const auto& variable : module.globals()) {
    if (variable.isThreadLocal())
      return fail(TC_ERR_COMPILE, "variable {} is thread-local, which injected code may not be",
                  variable.getName().str());
    const auto name = variable.getName();
    if ((name == "llvm.global_ctors" || name == "llvm.global_dtors") && variable.hasInitializer() &&
        !variable.getInitializer()->isNullValue())
      return fail(TC_ERR_COMPILE, "bitcode has static {}, which a node never runs: initialise in the entry instead",
                  name == "llvm.global_ctors" ? "constructors" : "destructors");
  }
  return {};
}

void set_host_cpu(llvm::Function& function, const Host& host) {
  function.removeFnAttr("tune-cpu");
  // Each combination of these attributes makes LLVM set up a description of the CPU of its own (1 ms, 800 KiB). This
  // one only matters where wide vectors are to be avoided.
  function.removeFnAttr("min-legal-vector-width");
  function.addFnAttr("target-cpu", host.cpu);
  function.addFnAttr("target-features", host.features);
  if (!host.vector_width.empty()) function.addFnAttr("prefer-vector-width", host.vector_width);
}

}  // namespace

Status fit_to_host(llvm::Module& module, const Host& host, const llvm::TargetMachine& machine) {
  const auto layout = machine.createDataLayout();
  TC_CHECK(check_triple(module.getTargetTriple(), machine.getTargetTriple()));
  TC_CHECK(check_layout(module, layout));
  TC_CHECK(check_globals(module));
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(layout);
  // What the module does not define may be anywhere in the address space, whatever model it was compiled for.
  for (auto& value : module.global_values())
    if (value.isDeclaration()) value.setDSOLocal(false);
  for (auto& function : module)
    if (!function.isDeclaration()) set_host_cpu(function, host);
  return {};
}

}  // namespace tc::target::jit
