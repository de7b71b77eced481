// SPDX-License-Identifier: Apache-2.0
#include "toolchain/built_in/tools.h"

#include <clang/Basic/DiagnosticIDs.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Driver/Compilation.h>
#include <clang/Driver/Driver.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/TextDiagnosticBuffer.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <filesystem>
#include <memory>
#include <string>

LLD_HAS_DRIVER(elf)

namespace tc::toolchain::built_in {

namespace {

std::unique_ptr<clang::FrontendAction> action_for(clang::frontend::ActionKind kind) {
  switch (kind) {
    case clang::frontend::EmitBC: return std::make_unique<clang::EmitBCAction>();
    case clang::frontend::EmitLLVM: return std::make_unique<clang::EmitLLVMAction>();
    case clang::frontend::EmitObj: return std::make_unique<clang::EmitObjAction>();
    case clang::frontend::EmitAssembly: return std::make_unique<clang::EmitAssemblyAction>();
    case clang::frontend::ParseSyntaxOnly: return std::make_unique<clang::SyntaxOnlyAction>();
    case clang::frontend::PrintPreprocessedInput: return std::make_unique<clang::PrintPreprocessedAction>();
    default: return nullptr;
  }
}

// Options of LLVM's own, which clang's driver gives for some processors.
void take_llvm_options(const std::vector<std::string>& options) {
  if (options.empty()) return;
  std::vector<const char*> line = {"clang (LLVM option parsing)"};
  for (const auto& option : options) line.push_back(option.c_str());
  llvm::cl::ParseCommandLineOptions(static_cast<int>(line.size()), line.data());
}

// One compilation, as the driver asks for it: `clang -cc1 …`.
int compile(llvm::SmallVectorImpl<const char*>& arguments) {
  // What is wrong with the arguments is known before there is anything to say it with.
  clang::DiagnosticOptions options;
  clang::TextDiagnosticBuffer early;
  clang::DiagnosticsEngine about_arguments(clang::DiagnosticIDs::create(), options, &early, false);
  auto wanted = std::make_shared<clang::CompilerInvocation>();
  const bool understood = clang::CompilerInvocation::CreateFromArgs(*wanted, llvm::ArrayRef(arguments).drop_front(2),
                                                                    about_arguments, arguments[0]);
  clang::CompilerInstance compiler(std::move(wanted));
  compiler.createVirtualFileSystem();
  compiler.createDiagnostics();
  early.FlushDiagnostics(compiler.getDiagnostics());
  if (!understood) return 1;
  take_llvm_options(compiler.getFrontendOpts().LLVMArgs);
  const auto action = action_for(compiler.getFrontendOpts().ProgramAction);
  if (action == nullptr) {
    llvm::errs() << "error: this clang only compiles: to bitcode, LLVM IR, assembly, an object or preprocessed text\n";
    return 1;
  }
  return compiler.ExecuteAction(*action) ? 0 : 1;
}

// PREFIX/share/threechains/clang, for a program in PREFIX/libexec/threechains.
std::string headers_of_its_own(const std::filesystem::path& program) {
  return (program.parent_path() / "../../share/threechains/clang").lexically_normal().string();
}

}  // namespace

int clang(const char* program, const std::vector<const char*>& arguments) {
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) self = program;
  const auto path = self.string();
  clang::DiagnosticOptions options;
  clang::DiagnosticsEngine diagnostics(clang::DiagnosticIDs::create(), options,
                                       new clang::TextDiagnosticPrinter(llvm::errs(), options));
  clang::driver::Driver driver(path, llvm::sys::getDefaultTargetTriple(), diagnostics);
  driver.CC1Main = compile;
  driver.setPrependArg(arguments[0]);
  driver.ResourceDir = headers_of_its_own(self);

  const std::string mode =
      std::string("--driver-mode=") + (std::string_view(arguments[0]) == "clang++" ? "g++" : "gcc");
  std::vector<const char*> line = {path.c_str(), mode.c_str()};
  line.insert(line.end(), arguments.begin() + 1, arguments.end());
  if (arguments.size() > 1 && std::string_view(arguments[1]) == "-cc1") {  // the driver, which had several jobs
    llvm::SmallVector<const char*> job(arguments.begin(), arguments.end());
    return compile(job);
  }
  const std::unique_ptr<clang::driver::Compilation> compilation(driver.BuildCompilation(line));
  if (compilation == nullptr || compilation->containsError()) return 1;
  llvm::SmallVector<std::pair<int, const clang::driver::Command*>> failing;
  const int status = driver.ExecuteCompilation(*compilation, failing);
  return status == 0 && !failing.empty() ? failing.front().first : status;
}

int lld(const std::vector<const char*>& arguments) {
  // It ends the process by itself when it is done, which saves it from giving back memory.
  return ::lld::elf::link(arguments, llvm::outs(), llvm::errs(), true, false) ? 0 : 1;
}

}  // namespace tc::toolchain::built_in
