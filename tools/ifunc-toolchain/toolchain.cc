// SPDX-License-Identifier: Apache-2.0
//
// `ifunc build` makes .ifunc files; `ifunc inspect --asm` shows their machine code. A program of its own, so that `ifunc` itself, and every node, is free of LLVM;
// `ifunc` runs it with its own arguments.
#include "ifunc-toolchain/toolchain.h"

#include <CLI/CLI.hpp>

#include <cstdio>

#include "base/file.h"
#include "ifunc-toolchain/commands.h"
#include "ifunc/usage.h"
#include "toolchain/build.h"
#include "toolchain/frontend.h"
#include "toolchain/tools.h"
#include "trust/code_signature.h"
#include "trust/key_file.h"

namespace {

namespace fs = std::filesystem;

// Where <threechains/ifunc.h> is: beside this program's installation, or in the source tree that it was built from.
fs::path include_directory() {
  std::error_code error;
  const auto self = fs::read_symlink("/proc/self/exe", error).parent_path();  // PREFIX/libexec/threechains
  std::vector<fs::path> places = {self / "../../share/threechains/include", self / "../../include",
                                  self / "../../../include"};
#ifdef TC_SOURCE_INCLUDE_DIR
  places.emplace_back(TC_SOURCE_INCLUDE_DIR);
#endif
  for (const auto& directory : places)
    if (fs::exists(directory / "threechains/ifunc.h", error)) return fs::weakly_canonical(directory, error);
  return places.back();
}

struct Arguments {
  tc::toolchain::BuildRequest request;
  std::string output;
  std::vector<std::string> signers;
  bool no_object = false;
  bool no_bitcode = false;
  bool quiet = false;
};

// CLI11 would take what follows "--" for inputs: it is clang's.
std::vector<std::string> split_off_clang_flags(int& argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--") {
      std::vector<std::string> flags(argv + i + 1, argv + argc);
      argc = i;
      return flags;
    }
  return {};
}

void declare(CLI::App& build, Arguments& arguments) {
  auto& request = arguments.request;
  build.add_option("source", request.inputs,
                   "the ifunc's source (.c .cc .cpp .cxx .rs .py .jl), or its bitcode (.bc .ll), one file "
                   "for each target");
  build.add_option("-o,--output", arguments.output, "the file to write (NAME.ifunc)")->type_name("FILE");
  build
      .add_option("-t,--target", request.targets,
                  "build for this triple; may be given often (x86_64-linux-gnu and "
                  "aarch64-linux-gnu); 'list' prints what there is")
      ->type_name("TRIPLE")
      ->allow_extra_args(false);
  build.add_option("--name", request.name, "the ifunc's name (the source's, without its suffix)");
  build
      .add_option("--extern", request.externs,
                  "a symbol that the target's application exports; '*' for any; may be "
                  "given often")
      ->type_name("SYMBOL")
      ->allow_extra_args(false);
  build.add_flag("--library", request.library,
                 "a library: what the source defines and does not make static may be used by ifuncs that come later; "
                 "it need not define NAME_main");
  build
      .add_option("--against", request.against,
                  "an .ifunc file of a library whose functions and data this ifunc uses; may be given often")
      ->type_name("FILE")
      ->allow_extra_args(false);
  build
      .add_option("--with", request.bundled,
                  "an .ifunc file that travels along, so that this ifunc can tc_inject() or tc_forward_as() it by "
                  "name wherever it is; may be given often")
      ->type_name("FILE")
      ->allow_extra_args(false);
  build
      .add_option(
          "--sign", arguments.signers,
          "sign it, and what is bundled with it, with this key of one's own (`ifunc key new NAME`); may be given "
          "often")
      ->type_name("NAME")
      ->allow_extra_args(false);
  build.add_flag("--no-object", arguments.no_object, "leave out machine code: targets compile the bitcode");
  build.add_flag("--no-bitcode", arguments.no_bitcode, "leave out bitcode: targets run the machine code as it is");
  build.add_flag("--allow-asm", request.allow_asm, "let inline assembly travel");
  build.add_flag("--allow-ctors", request.allow_ctors,
                 "run static constructors in the first call at each target; "
                 "destructors never run");
  build.add_flag("-q,--quiet", arguments.quiet, "print nothing when all went well");
}

void report(const tc::Bundle& bundle, const std::string& output) {
  std::vector<std::string> triples;
  size_t bitcode = 0, object = 0, bundled = 0;
  for (const auto& slice : bundle.manifest().slices) {
    if (slice.role == tc::SliceRole::bundled) {
      bundled += slice.stored_size;
      continue;
    }
    if (slice.triple.text == tc::python_signature) continue;
    if (std::find(triples.begin(), triples.end(), slice.triple.text) == triples.end())
      triples.push_back(slice.triple.text);
    (slice.form == tc::SliceForm::bitcode ? bitcode : object) += slice.stored_size;
  }
  const auto with = bundled != 0 ? fmt::format(", bundled {}", bundled) : "";
  fmt::print("{}: {} bytes for {} (bitcode {}, machine code {}{}), content id {}\n", output, bundle.bytes().size(),
             fmt::join(triples, ", "), bitcode, object, with, bundle.id().short_hex());
  for (const auto& key : tc::trust::signers_of(bundle)) fmt::print("{}: signed by {}\n", output, key.text());
}

int complain(const std::string& message) {
  fmt::print(stderr, "ifunc build: {}\n", message);
  return 1;
}

int run(Arguments& arguments) {
  auto& request = arguments.request;
  if (request.targets == std::vector<std::string>{"list"}) {
    fmt::print("{}", tc::toolchain::list_targets());
    return 0;
  }
  if (request.inputs.empty()) {
    (void)complain("no source file is given; `ifunc build --help` says what there is");
    return 2;
  }
  request.include_directory = include_directory();
  request.objects = !arguments.no_object;
  request.bitcode = !arguments.no_bitcode;
  std::vector<tc::trust::KeyPair> signers;  // found before the compilers run, which takes a while
  for (const auto& name : arguments.signers) {
    auto key = tc::trust::find_key(name);
    if (!key) return complain(key.error().message);
    signers.push_back(std::move(*key));
  }
  auto result = tc::toolchain::build(request);
  if (!result) return complain(result.error().message);
  for (const auto& key : signers)
    if (auto done = tc::trust::sign_bundle(result->bundle, key); !done) return complain(done.error().message);
  for (const auto& warning : result->warnings) fmt::print(stderr, "ifunc build: warning: {}\n", warning);
  const auto output = arguments.output.empty() ? result->bundle.manifest().name + ".ifunc" : arguments.output;
  if (auto written = tc::write_file_atomically(output, result->bundle.bytes()); !written)
    return complain(written.error().message);
  if (!arguments.quiet) report(result->bundle, output);
  return 0;
}

}  // namespace

int threechains_toolchain(int argc, char** argv) {
  if (const auto exit_code = tc::toolchain::run_built_in_tool(argc, argv)) return *exit_code;
  CLI::App app("Makes ifuncs: functions that can be sent to other processes.", "ifunc");
  app.set_version_flag("--version", "ifunc " TC_TOOL_VERSION);
  app.require_subcommand(1);
  Arguments arguments;
  auto& build = *app.add_subcommand("build", "make NAME.ifunc from a source file; options behind -- are clang's");
  declare(build, arguments);
  int exit_code = 0;
  tc::command::add_show_assembly(app, exit_code);
  tc::command::add_compile(app, exit_code);
  arguments.request.clang_flags = split_off_clang_flags(argc, argv);
  build.callback([&] { exit_code = run(arguments); });
  return tc::command::parse_and_run(app, argc, argv, exit_code);
}
