// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/file.h"
#include "ifunc-toolchain/commands.h"
#include "toolchain/codegen.h"
#include "wire/bundle.h"

namespace tc::command {

namespace {

// What one job may take: bitcode from elsewhere can make LLVM want any amount.
[[maybe_unused]] constexpr rlim_t memory_limit = rlim_t{4} << 30;  // not under the address sanitizer, which maps more
constexpr rlim_t file_limit = 256u << 20;

struct Options {
  std::string name, triple, cpu, features, input, output;
  unsigned limit_ms = 10'000;
};

void limit(int what, rlim_t value) {
  const rlimit both{value, value};
  (void)::setrlimit(what, &both);
}

// The node that started us need not have closed what it has open, and may die before it can end us.
void confine(unsigned limit_ms) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)::close_range(3, ~0u, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, file_limit);
  limit(RLIMIT_CPU, limit_ms / 1000 + 2);
#if !defined(__SANITIZE_ADDRESS__)
  limit(RLIMIT_AS, memory_limit);
#endif
}

Status compile(const Options& options) {
  TC_ASSIGN(const auto bitcode, read_file(options.input, BundleLimits::slice_bytes));
  TC_ASSIGN(const auto object, toolchain::object_for_cpu(bitcode, options.triple, options.cpu, options.features,
                                                         "ifunc '" + options.name + "'"));
  return write_file_atomically(options.output, object);
}

}  // namespace

void add_compile(CLI::App& app, int& exit_code) {
  // A node's, not a person's: not in the help.
  auto* const command = app.add_subcommand("compile", "")->group("");
  const auto options = std::make_shared<Options>();
  command->add_option("--name", options->name)->required();
  command->add_option("--target", options->triple)->required();
  command->add_option("--cpu", options->cpu);
  command->add_option("--features", options->features);
  command->add_option("--limit-ms", options->limit_ms);
  command->add_option("INPUT", options->input)->required();
  command->add_option("OUTPUT", options->output)->required();
  command->callback([options, &exit_code] {
    confine(options->limit_ms);
    if (const auto done = compile(*options); !done) {
      fmt::print(stderr, "{}\n", done.error().message);
      exit_code = 1;
    }
  });
}

}  // namespace tc::command
