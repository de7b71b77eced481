// SPDX-License-Identifier: Apache-2.0
#include "target/jit/compiler.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "target/jit/fatal_guard.h"
#include "target/jit/llvm_error.h"
#include "target/jit/module_check.h"
#include "target/jit/optimizer.h"

namespace tc::target::jit {

namespace {

// A context keeps every type and constant it ever saw. A new one costs some 60 µs and forgets them.
constexpr unsigned uses_of_a_context = 256;

// The rest of what LLVM says is a listing.
std::string first_line(const std::string& words) { return words.substr(0, words.find('\n')); }

// Collects errors; LLVM's own handler would print them and exit.
class Collector final : public llvm::DiagnosticHandler {
 public:
  explicit Collector(std::string& errors) : errors_(errors) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo& diagnostic) override {
    if (diagnostic.getSeverity() != llvm::DS_Error) return true;
    std::string words;
    llvm::raw_string_ostream stream(words);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    diagnostic.print(printer);
    errors_ += (errors_.empty() ? "" : "; ") + first_line(words);
    return true;
  }

 private:
  std::string& errors_;
};

Status verify(const llvm::Module& module) {
  std::string words;
  llvm::raw_string_ostream stream(words);
  if (!llvm::verifyModule(module, &stream)) return {};
  return fail(TC_ERR_COMPILE, "bitcode is not valid: {}", first_line(words));
}

}  // namespace

Status Compiler::prepare() {
  if (!context_ || ++context_uses_ > uses_of_a_context) {
    context_ = std::make_unique<llvm::LLVMContext>();
    context_->setDiscardValueNames(true);
    context_->setDiagnosticHandler(std::make_unique<Collector>(errors_));
    context_uses_ = 1;
  }
  if (!machine_) {
    TC_ASSIGN(machine_, host_.machine(effort_));
  }
  if (!generator_) {
    TC_ASSIGN(generator_, CodeGenerator::create(*machine_, output_));
  }
  errors_.clear();
  return {};
}

Status Compiler::reported() {
  if (errors_.empty()) return {};
  return fail(TC_ERR_COMPILE, "LLVM cannot compile it: {}", errors_);
}

Result<std::unique_ptr<llvm::Module>> Compiler::parse(ByteView bitcode, const std::string& label) {
  // Bitcode only: LLVM's parseIR takes text as well, and crashes on junk.
  const auto text = as_text(bitcode);
  auto parsed =
      llvm::parseBitcodeFile(llvm::MemoryBufferRef(llvm::StringRef(text.data(), text.size()), label), *context_);
  if (!parsed) return compile_error("LLVM cannot read the bitcode", parsed.takeError());
  TC_CHECK(reported());
  return std::move(*parsed);
}

Compiler::Compiler(const Host& host, Effort effort, llvm::CodeGenFileType output)
    : host_(host), effort_(effort), output_(output) {
  install_fatal_guard();
}

Result<Bytes> Compiler::compile(ByteView bitcode, const std::string& label) {
  const std::lock_guard lock(mutex_);
  if (!fatal_.empty())
    if (const auto found = fatal_.find(ContentId::of(bitcode)); found != fatal_.end()) return fail(found->second);
  Result<Bytes> result;
  if (const auto reason = run_guarded([&] { result = compile_unguarded(bitcode, label); }))
    return abandon(bitcode, *reason);
  return result;
}

Result<Bytes> Compiler::compile_unguarded(ByteView bitcode, const std::string& label) {
  TC_CHECK(prepare());
  TC_ASSIGN(auto module, parse(bitcode, label));
  TC_CHECK(fit_to_host(*module, host_, *machine_));
  TC_CHECK(verify(*module));
  if (effort_ == Effort::tuned) optimize(*module, *machine_);
  auto object = generator_->run(*module);
  auto verdict = reported();
  if (verdict) return object;
  generator_.reset();
  return fail(std::move(verdict).error());
}

std::unexpected<Error> Compiler::abandon(ByteView bitcode, const std::string& reason) {
  // LLVM was interrupted in the middle: destroying these could run into anything.
  (void)generator_.release();
  (void)machine_.release();
  (void)context_.release();
  const Error error{TC_ERR_COMPILE,
                    fmt::format("LLVM cannot compile it for this CPU ({}): {}", host_.cpu, first_line(reason))};
  fatal_.emplace(ContentId::of(bitcode), error);
  return fail(error);
}

}  // namespace tc::target::jit
