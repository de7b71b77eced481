// SPDX-License-Identifier: Apache-2.0
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <thread>

#include "target/testing/jit_test_base.h"

namespace tc::target::jit {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Compile : public JitTest {};

// The text of all instructions in the object.
std::string disassembled(const Bytes& object) {
  const auto text = as_text(object);
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(text.data(), text.size()), "object"));
  if (!file) return llvm::toString(file.takeError());
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  LLVMInitializeNativeDisassembler();
  LLVMDisasmContextRef disassembler = LLVMCreateDisasmCPU(
      llvm::sys::getProcessTriple().c_str(), llvm::sys::getHostCPUName().str().c_str(), nullptr, 0, nullptr, nullptr);
  std::string result;
  for (const auto& section : (*file)->sections()) {
    if (!section.isText()) continue;
    const auto contents = llvm::cantFail(section.getContents());
    std::vector<uint8_t> bytes(contents.begin(), contents.end());
    for (size_t at = 0; at < bytes.size();) {
      char line[256];
      const auto size =
          LLVMDisasmInstruction(disassembler, bytes.data() + at, bytes.size() - at, at, line, sizeof line);
      if (size != 0) result += std::string(line) + "\n";
      at += size == 0 ? 1 : size;
    }
  }
  LLVMDisasmDispose(disassembler);
  return result;
}

TEST_F(Compile, the_factory_refuses_another_version) { EXPECT_EQ(plugin_factory()(jit_plugin_version + 1), nullptr); }

TEST_F(Compile, warm_up_runs_a_function_and_may_be_repeated) {
  for (int i = 0; i < 3; ++i) {
    const auto warm = jit_->warm_up();
    EXPECT_TRUE(warm) << warm.error().message;
  }
}

// The numbers are those in testdata/kept_addresses.c.
TEST_F(Compile, code_that_keeps_addresses_of_labels_or_compares_kept_functions_is_not_exchanged) {
  for (const int number : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 19, 21}) {
    const auto may = jit_->may_exchange(test_file(fmt::format("kept_addresses_{}.bc", number)), "kept");
    ASSERT_TRUE(may) << may.error().message;
    EXPECT_FALSE(*may) << number;
  }
  const auto may = jit_->may_exchange(test_file("kept_labels.bc"), "kept");
  ASSERT_TRUE(may) << may.error().message;
  EXPECT_FALSE(*may);
}

TEST_F(Compile, code_that_keeps_no_address_or_calls_what_it_keeps_is_exchanged) {
  for (const int number : {11, 12, 13, 14, 18, 20}) {
    const auto may = jit_->may_exchange(test_file(fmt::format("kept_addresses_{}.bc", number)), "kept");
    ASSERT_TRUE(may) << may.error().message;
    EXPECT_TRUE(*may) << number;
  }
  for (const auto* name : {"data", "calls", "tsi", "exception"}) {
    const auto may = jit_->may_exchange(test_file(std::string(name) + ".bc"), name);
    ASSERT_TRUE(may) << may.error().message;
    EXPECT_TRUE(*may) << name;
  }
}

TEST_F(Compile, bitcode_that_cannot_be_read_is_not_judged) {
  EXPECT_FALSE(jit_->may_exchange(as_bytes(std::string_view("no bitcode")), "bad"));
}

// Such work is looked at by one frame of the stack, and each comparison for a bounded time.
TEST_F(Compile, code_with_a_long_chain_of_choices_before_each_comparison_is_judged_at_once) {
  constexpr unsigned length = 100'000;
  llvm::LLVMContext context;
  llvm::Module module("long", context);
  llvm::IRBuilder<> build(context);
  auto* const pointer = build.getPtrTy();
  auto* const kept = new llvm::GlobalVariable(module, pointer, false, llvm::GlobalValue::ExternalLinkage,
                                              llvm::ConstantPointerNull::get(pointer), "kept");
  auto* const run =
      llvm::Function::Create(llvm::FunctionType::get(build.getVoidTy(), {pointer, build.getInt1Ty()}, false),
                             llvm::Function::ExternalLinkage, "run", module);
  build.SetInsertPoint(llvm::BasicBlock::Create(context, "", run));
  build.CreateStore(run, kept);
  llvm::Value* last = build.CreateAlloca(build.getInt64Ty());  // no function, as is seen at the end of each chain
  for (unsigned i = 0; i < length; ++i) {
    last = build.CreateSelect(run->getArg(1), run->getArg(0), last);
    if (i < 10) build.CreateICmpEQ(run->getArg(0), last);
  }
  build.CreateICmpEQ(run->getArg(0), last);
  build.CreateRetVoid();
  std::string bitcode;
  llvm::raw_string_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(module, stream);
  const auto may = jit_->may_exchange(as_bytes(bitcode), "long");
  ASSERT_TRUE(may) << may.error().message;
  EXPECT_FALSE(*may);
}

TEST_F(Compile, tuned_loops_use_the_widest_vectors_of_this_cpu) {
  const auto features = llvm::sys::getHostCPUFeatures();
  const bool avx512 = features.lookup("avx512f"), avx2 = features.lookup("avx2");
  if (!avx2) GTEST_SKIP() << "this CPU has neither AVX2 nor AVX-512";
  const auto text = disassembled(compiled("loops", Effort::tuned));
  EXPECT_THAT(text, ContainsRegex(avx512 ? "vfmadd.*ps.*%zmm" : "vfmadd.*ps.*%ymm"));
}

TEST_F(Compile, baseline_code_is_not_vectorised) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "looks for registers of x86-64";
#endif
  EXPECT_THAT(disassembled(compiled("loops", Effort::baseline)), Not(ContainsRegex("%[yz]mm")));
}

TEST_F(Compile, tuned_loops_compute_what_they_should) {
  const auto code = linked(compiled("loops", Effort::tuned));
  ASSERT_NE(code, nullptr);
  std::vector<float> x(1001), y(1001);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i), y[i] = 1;
  function<void(float, const float*, float*, long)>(*code, "saxpy")(2, x.data(), y.data(), 1001);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * static_cast<float>(i) + 1) << i;
  std::vector<float> ones(1001, 1);
  EXPECT_EQ((function<float(const float*, const float*, long)>(*code, "dot")(x.data(), ones.data(), 1001)), 500500);
}

TEST_F(Compile, tuning_calls_no_function_that_the_bitcode_does_not_name) {
  const auto wanted = [](const std::string& name) -> Result<void*> {
    return fail(TC_ERR_UNRESOLVED, "wants {}", name);
  };
  const auto code = jit_->link(compiled("libcalls", Effort::tuned), "libcalls", wanted, {}, nullptr);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().message, "wants printf");
}

TEST_F(Compile, the_same_bitcode_gives_the_same_object) {
  for (const auto effort : {Effort::baseline, Effort::tuned}) {
    const auto first = compiled("data", effort);
    compiled("exception", effort);
    EXPECT_EQ(compiled("data", effort), first);
  }
}

TEST_F(Compile, fingerprints_tell_efforts_apart_and_name_llvm) {
  EXPECT_NE(jit_->fingerprint(Effort::baseline), jit_->fingerprint(Effort::tuned));
  EXPECT_THAT(jit_->fingerprint(Effort::baseline), HasSubstr("llvm 22."));
  std::unique_ptr<Jit> other(plugin_factory()(jit_plugin_version));
  EXPECT_EQ(other->fingerprint(Effort::tuned), jit_->fingerprint(Effort::tuned));
}

TEST_F(Compile, baseline_and_tuned_run_at_the_same_time) {
  const auto bitcode = test_file("data.bc");
  std::atomic<int> good = 0;
  const auto work = [&](Effort effort, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const auto object = jit_->compile(bitcode, effort, Assembly::refused, "data");
      if (!object) continue;
      const auto code = jit_->link(*object, "data", resolver(), {}, nullptr);
      if (code && reinterpret_cast<int (*)(int)>((*code)->symbol("data_count"))(2) == 42) ++good;
    }
  };
  std::thread tuned(work, Effort::tuned, 20);
  work(Effort::baseline, 200);
  tuned.join();
  EXPECT_EQ(good, 220);
}

// What cannot be compiled is an error with a reason, for either effort, and the next compilation works.
class Refuse : public EitherEffort {
 protected:
  void expect_refused(const Bytes& bitcode, const std::string& reason, Assembly assembly = Assembly::refused) {
    const auto object = jit_->compile(bitcode, GetParam(), assembly, "bad");
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().code, TC_ERR_COMPILE);
    EXPECT_THAT(object.error().message, HasSubstr(reason));
    EXPECT_THAT(object.error().message, Not(HasSubstr("\n")));
    EXPECT_FALSE(compiled("data", GetParam()).empty());
  }
};
INSTANTIATE_TEST_SUITE_P(, Refuse, testing::Values(Effort::baseline, Effort::tuned), effort_name);

TEST_P(Refuse, what_is_no_bitcode) {
  expect_refused({}, "cannot read the bitcode");
  const auto text = as_bytes("define void @f() { ret void }");
  expect_refused(Bytes(text.begin(), text.end()), "cannot read the bitcode");
  expect_refused(test_file("data.o"), "cannot read the bitcode");
}

TEST_P(Refuse, assembly_of_those_who_may_not_run_any_code) {
  for (const std::string scope : {"AT_FILE_SCOPE", "WITH_LABELS", "IN_LINE"})
    for (const std::string what : {"INCBIN_", "INCLUDE_", "BYTE_"})
      expect_refused(test_file(what + scope + ".bc"),
                     scope == "AT_FILE_SCOPE" ? "holds assembly at file scope" : "holds inline assembly");
}

TEST_P(Refuse, a_frame_table_of_the_authors_own_making) {
  expect_refused(test_file("frame_table.bc"), "'frame_table' stands in the section .eh_frame");
}

// Whoever may run any code: LLVM opens no file for what it compiles.
TEST_P(Refuse, assembly_that_asks_for_a_file_whoever_sends_it) {
  for (const std::string scope : {"AT_FILE_SCOPE", "WITH_LABELS", "IN_LINE"}) {
    const auto taken = jit_->compile(test_file("BYTE_" + scope + ".bc"), GetParam(), Assembly::allowed, "byte");
    ASSERT_TRUE(taken) << scope << ": " << taken.error().message;
    for (const std::string what : {"INCBIN_", "INCLUDE_"}) {
      const auto object = jit_->compile(test_file(what + scope + ".bc"), GetParam(), Assembly::allowed, "reads");
      ASSERT_FALSE(object) << what << scope;
      EXPECT_EQ(object.error().code, TC_ERR_COMPILE);
      EXPECT_THAT(object.error().message, HasSubstr("/dev/null"));
    }
  }
}

TEST_P(Refuse, bitcode_cut_short) {
  const auto whole = test_file("data.bc");
  for (const size_t size : {size_t{4}, size_t{20}, whole.size() / 4, whole.size() / 2, whole.size() * 3 / 4})
    expect_refused(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)), "cannot read the bitcode");
}

TEST_P(Refuse, bitcode_for_another_architecture) {
  expect_refused(test_file("other_arch.bc"), "bitcode is for powerpc64 when this node is");
}

TEST_P(Refuse, thread_local_variables) { expect_refused(test_file("thread_local.bc"), "mine is thread-local"); }

TEST_P(Refuse, thread_local_variables_of_others) {
  expect_refused(test_file("thread_local_extern.bc"), "theirs is thread-local");
}

TEST_P(Refuse, static_constructors) { expect_refused(test_file("constructor.bc"), "static constructors"); }

TEST_P(Refuse, assembly_that_is_none) {
  expect_refused(test_file("bad_assembly.bc"), "<inline asm>:1:10: unexpected token", Assembly::allowed);
}

TEST_P(Refuse, instructions_that_this_cpu_lacks) {
  const auto features = llvm::sys::getHostCPUFeatures();
  if (!features.contains("xop")) GTEST_SKIP() << "not an x86-64 CPU";
  if (features.lookup("xop")) GTEST_SKIP() << "this CPU has XOP";
  const AllowLeaks allowed;
  // LLVM's own way to say so is to end the process.
  for (int i = 0; i < 3; ++i) expect_refused(test_file("xop.bc"), "Cannot select");
}

}  // namespace
}  // namespace tc::target::jit
