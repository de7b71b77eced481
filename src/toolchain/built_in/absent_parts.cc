// SPDX-License-Identifier: Apache-2.0
//
// clang and lld set up every code generator that LLVM was built with, and Polly. Here are those of the processors that ifuncs
// are compiled for; the others are defined as nothing, so that the linker leaves out what would come with them. And LLVM takes
// a function of glibc 2.36, when all else runs with 2.35.
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Plugins/PassPlugin.h>
#include <sys/random.h>

#include <cstdint>

#define TC_ABSENT(X) \
  X(AMDGPU)          \
  X(ARM)             \
  X(AVR)             \
  X(BPF)             \
  X(Hexagon)         \
  X(Lanai)           \
  X(LoongArch)       \
  X(M68k)            \
  X(MSP430)          \
  X(Mips)            \
  X(NVPTX)           \
  X(PowerPC)         \
  X(SPIRV)           \
  X(Sparc)           \
  X(SystemZ)         \
  X(VE)              \
  X(WebAssembly)     \
  X(XCore)           \
  X(Xtensa)

extern "C" {
#define TC_SETS_UP_NOTHING(processor)             \
  void LLVMInitialize##processor##TargetInfo();   \
  void LLVMInitialize##processor##TargetInfo() {} \
  void LLVMInitialize##processor##Target();       \
  void LLVMInitialize##processor##Target() {}     \
  void LLVMInitialize##processor##TargetMC();     \
  void LLVMInitialize##processor##TargetMC() {}   \
  void LLVMInitialize##processor##AsmParser();    \
  void LLVMInitialize##processor##AsmParser() {}  \
  void LLVMInitialize##processor##AsmPrinter();   \
  void LLVMInitialize##processor##AsmPrinter() {} \
  void LLVMInitialize##processor##Disassembler(); \
  void LLVMInitialize##processor##Disassembler() {}
TC_ABSENT(TC_SETS_UP_NOTHING)

uint32_t arc4random() noexcept;
uint32_t arc4random() noexcept {  // for names of temporary files
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}
}

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "none", [](llvm::PassBuilder&) {}, nullptr};
}
