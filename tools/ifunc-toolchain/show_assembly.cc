// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "ifunc-toolchain/commands.h"
#include "toolchain/assembly.h"

namespace tc::command {

namespace {

struct Options {
  std::string file;
  toolchain::AssemblyRequest request;
  bool asked = false;
};

Result<std::string> show(const Options& options) {
  if (options.request.cpu == "list") return toolchain::known_cpus(options.request.triple);
  if (options.file.empty()) return fail(TC_ERR_INVALID, "name an .ifunc file");
  TC_ASSIGN(const auto bytes, read_file(options.file, BundleLimits::bundle_bytes));
  const auto bundle = Bundle::read(bytes);
  if (!bundle) return context(options.file, bundle.error());
  auto text = toolchain::assembly(*bundle, options.request);
  if (!text) return context(options.file, text.error());
  return text;
}

}  // namespace

void add_show_assembly(CLI::App& app, int& exit_code) {
  auto* const command =
      app.add_subcommand("inspect", "show machine code: what is in the file, or what a CPU would run");
  const auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "an .ifunc file");
  command->add_flag("--asm", options->asked, "print machine code");
  command
      ->add_option("--cpu", options->request.cpu,
                   "the code that a node with this CPU runs, once tuned, from the bitcode; "
                   "'native': this machine's; 'list' prints the names there are")
      ->type_name("NAME");
  command->add_option("-t,--target", options->request.triple, "the code for this triple (this machine's)")
      ->type_name("TRIPLE");
  command->callback([options, &exit_code] {
    const auto text = show(*options);
    if (text) {
      std::fwrite(text->data(), 1, text->size(), stdout);
    } else {
      fmt::print(stderr, "ifunc inspect: {}\n", text.error().message);
      exit_code = 1;
    }
  });
}

}  // namespace tc::command
