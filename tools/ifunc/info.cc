// SPDX-License-Identifier: Apache-2.0
//
// `ifunc info`: what this installation has and what it lacks, without a node and without the network.
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sched.h>
#include <sys/resource.h>
#include <threechains/ifunc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/plugin.h"
#include "ifunc/asking.h"
#include "ifunc/commands.h"
#include "ifunc/json.h"
#include "ifunc/keys.h"
#include "target/cpu.h"
#include "trust/key_file.h"
#include "wire/frame.h"

namespace tc::command {
namespace {

// A file of ours that is opened or run when it is needed.
struct Part {
  const char* name;
  const char* purpose;
  const char* get;   // what to do when it is missing
  std::string path;  // where it was loaded from, or where the program is; empty: it is missing
  std::string why;   // then
};

struct Information {
  std::vector<Part> parts;
  std::string llvm;  // version, and where it was loaded from; empty: unknown
  std::string cpu, cpu_level, architecture;
  uint64_t cores = 0, memory_bytes = 0;
  rlimit descriptors{}, locked_memory{};
  std::string home, key, key_error, keyring, keyring_error;
  size_t keyring_keys = 0;
  bool is_configuration_bad() const { return !key_error.empty() || !keyring_error.empty(); }

  const Part& part(std::string_view name) const {
    return *std::ranges::find_if(parts, [&](const auto& one) { return one.name == name; });
  }
  bool has(std::string_view name) const { return !part(name).path.empty(); }
};

// ---- Parts

std::filesystem::path library_file() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&tc_version), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::filesystem::path(info.dli_fname) : path;
}

// Beside the library, as a node looks for it. This program lies in another folder, from which open_plugin() starts.
std::string beside_library(const std::string& file) {
  const auto folder = library_file().parent_path();
  for (const auto& path : {folder / file, folder / "threechains" / file, folder.parent_path() / "lib" / file})
    if (::access(path.c_str(), R_OK) == 0) return path.string();
  return {};
}

std::string path_of(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "loaded";
  return map->l_name;
}

// Only what opens is there: a plug-in may lack a library of its own.
void* open(Part& part, const std::string& file) {
  const auto opened = open_plugin(file, beside_library(file));
  if (!opened) return part.why = opened.error().message, nullptr;
  part.path = path_of(*opened);
  return *opened;
}

void find_program(Part& part, const std::filesystem::path& path) {
  if (::access(path.c_str(), X_OK) == 0)
    part.path = path.string();
  else
    part.why = fmt::format("{} is not there, or cannot be run", path.string());
}

std::string llvm_of(void* jit) {
  if (jit == nullptr) return {};
  void* const found = dlsym(jit, "LLVMGetVersion");
  if (found == nullptr) return {};
  unsigned major = 0, minor = 0, patch = 0;
  reinterpret_cast<void (*)(unsigned*, unsigned*, unsigned*)>(found)(&major, &minor, &patch);
  Dl_info info;
  const bool has_file = dladdr(found, &info) != 0 && info.dli_fname != nullptr;
  return fmt::format("{}.{}.{}{}{}", major, minor, patch, has_file ? " from " : "", has_file ? info.dli_fname : "");
}

void find_parts(Information& all) {
  Part library{"library", "what nodes are made of", "install the package threechains", library_file().string(), ""};
  Part jit{
      "jit", "compiles bitcode at a node; without it a node runs objects only",
      "install the package threechains-jit, name the file with the option jit-plugin, or have it compiled elsewhere "
      "(option compile-at)",
      "", ""};
  Part tls{"tls", "encrypted connections over TCP",
           "install the package threechains and OpenSSL 3, or name the file with the option tls-plugin", "", ""};
  Part ucx{"ucx", "the transports ucx and ucx-put",
           "install the package threechains-hpc and UCX, or name the file with the option ucx-plugin", "", ""};
  Part pmix{"pmix", "bootstrap=pmix: nodes that Slurm, PRRTE or Flux start",
            "install the package threechains-hpc and PMIx, or name the file with the option pmix-plugin", "", ""};
  Part metrics{"metrics", "`ifunc serve --metrics`: the page for Prometheus",
               "install the package threechains, libmicrohttpd and prometheus-cpp", "", ""};
  Part cell{"cell", "runs code in processes of its own (option isolate)",
            "install the package threechains, or name the program with the option cell", "", ""};
  Part toolchain{"toolchain", "`ifunc build`, and compilation for other nodes",
                 "install the package threechains-dev, or set TC_LIBEXEC to the folder that holds ifunc-toolchain", "",
                 ""};
  Part bench{"bench", "`ifunc bench`",
             "install the package threechains-hpc, or set TC_LIBEXEC to the folder that holds ifunc-bench", "", ""};
  Part top{"top", "`ifunc top`",
           "install the package threechains and ncurses, or set TC_LIBEXEC to the folder that holds ifunc-top", "", ""};
  all.llvm = llvm_of(open(jit, "libthreechains_jit.so"));
  open(tls, "libthreechains_tls.so");
  // A self-contained build has no dependency on UCX, and finds it when it is wanted.
  if (open(ucx, "libthreechains_ucx.so") == nullptr) {
    const char* const named = std::getenv("TC_UCX");
    if (dlopen(named != nullptr && *named != '\0' ? named : "libucp.so.0", RTLD_NOW | RTLD_GLOBAL) != nullptr)
      open(ucx, "libthreechains_ucx.so");
  }
  open(pmix, "libthreechains_pmix.so");
  open(metrics, "libthreechains_metrics.so");
  find_program(cell, own_program("threechains-cell"));
  find_program(toolchain, own_program("ifunc-toolchain"));
  find_program(bench, own_program("ifunc-bench"));
  find_program(top, own_program("ifunc-top"));
  all.parts = {library, jit, tls, ucx, pmix, metrics, cell, toolchain, bench, top};
}

// ---- This machine, and whose keys there are

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

void look_at_machine(Information& all) {
  const auto cpu = target::host_cpu();
  all.cpu = cpu_model();
  all.cpu_level = cpu.name + (cpu.features.empty() ? "" : " " + cpu.features);
  all.architecture = TargetTriple::host().text;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) all.cores = static_cast<uint64_t>(CPU_COUNT(&cores));
  all.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  (void)getrlimit(RLIMIT_NOFILE, &all.descriptors);
  (void)getrlimit(RLIMIT_MEMLOCK, &all.locked_memory);
}

void look_at_keys(Information& all) {
  const auto home = trust::home();
  if (!home) {
    all.key_error = home.error().message;
    return;
  }
  all.home = home->string();
  if (const auto key = trust::find_key(trust::default_key))
    all.key = key->public_key().text();
  else if (key.error().code != TC_ERR_NOT_FOUND)
    all.key_error = key.error().message;
  all.keyring = (*home / "keyring").string();
  if (const auto keyring = load_keyring(""))
    all.keyring_keys = keyring->grants().size();
  else
    all.keyring_error = keyring.error().message;
}

// ---- Output

std::vector<std::pair<const char*, bool>> transports_of(const Information& all) {
  return {{"shm", true}, {"unix", true}, {"tcp", true}, {"tls", all.has("tls")}, {"ucx", all.has("ucx")}};
}

std::string limit_text(rlim_t limit) { return limit == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit); }
std::string limit_json(rlim_t limit) { return limit == RLIM_INFINITY ? "null" : fmt::format("{}", limit); }

void print_text(const Information& all) {
  const auto line = [](std::string_view name, std::string_view value) { fmt::print("  {:<18} {}\n", name, value); };
  fmt::print("versions\n");
  line("Three-Chains", tc_version());
  line("link protocol", fmt::format("{}", wire::protocol_version));
  line("ifunc ABI", fmt::format("{}", TC_IFUNC_ABI));
  if (!all.llvm.empty()) line("LLVM", all.llvm);
  fmt::print("parts\n");
  for (const auto& part : all.parts) line(part.name, part.path.empty() ? "missing" : part.path);
  fmt::print("transports\n");
  for (const auto& [name, is_there] : transports_of(all)) line(name, is_there ? "yes" : "no, as its part is missing");
  fmt::print("this machine\n");
  line("CPU", all.cpu);
  line("code for it", fmt::format("{}, {}", all.architecture, all.cpu_level));
  line("cores", fmt::format("{}", all.cores));
  line("memory", fmt::format("{} bytes", all.memory_bytes));
  line("file descriptors",
       fmt::format("{}, at most {}", limit_text(all.descriptors.rlim_cur), limit_text(all.descriptors.rlim_max)));
  line("locked memory", fmt::format("{} bytes", limit_text(all.locked_memory.rlim_cur)));
  fmt::print("keys\n");
  line("home", all.home.empty() ? all.key_error : all.home);
  if (!all.home.empty()) {
    line("own key", !all.key_error.empty() ? all.key_error
                    : all.key.empty()      ? "none; `ifunc key new default` makes one"
                                           : all.key);
    line("keyring",
         !all.keyring_error.empty() ? all.keyring_error : fmt::format("{}, {} keys", all.keyring, all.keyring_keys));
  }
  bool has_title = false;
  for (const auto& part : all.parts) {
    if (!part.path.empty()) continue;
    if (!std::exchange(has_title, true)) fmt::print("missing\n");
    fmt::print("  {} ({})\n    to get it: {}\n    why: {}\n", part.name, part.purpose, part.get, part.why);
  }
}

void print_json(const Information& all, int exit_code) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? "null" : json::string(text); };
  std::vector<std::string> parts;
  for (const auto& part : all.parts)
    parts.push_back(json::object({{"name", json::string(part.name)},
                                  {"purpose", json::string(part.purpose)},
                                  {"path", text_or_null(part.path)},
                                  {"error", text_or_null(part.path.empty() ? part.why : "")},
                                  {"get", part.path.empty() ? json::string(part.get) : "null"}}));
  std::vector<std::pair<std::string_view, std::string>> transports;
  for (const auto& [name, is_there] : transports_of(all)) transports.emplace_back(name, json::boolean(is_there));
  fmt::print("{}\n",
             json::object({{"schema", json::string("threechains-info/1")},
                           {"time", json::string(timestamp())},
                           {"state", json::string(exit_code == exit_codes::ok ? "ok" : "bad_configuration")},
                           {"exit_code", fmt::format("{}", exit_code)},
                           {"version", json::string(tc_version())},
                           {"protocol_version", fmt::format("{}", wire::protocol_version)},
                           {"ifunc_abi", fmt::format("{}", TC_IFUNC_ABI)},
                           {"llvm", text_or_null(all.llvm)},
                           {"parts", json::array(parts)},
                           {"transports", json::object(transports)},
                           {"cpu", json::object({{"model", json::string(all.cpu)},
                                                 {"level", json::string(all.cpu_level)},
                                                 {"triple", json::string(all.architecture)},
                                                 {"cores", fmt::format("{}", all.cores)}})},
                           {"limits", json::object({{"memory_bytes", fmt::format("{}", all.memory_bytes)},
                                                    {"descriptors", limit_json(all.descriptors.rlim_cur)},
                                                    {"most_descriptors", limit_json(all.descriptors.rlim_max)},
                                                    {"locked_memory_bytes", limit_json(all.locked_memory.rlim_cur)}})},
                           {"keys", json::object({{"home", text_or_null(all.home)},
                                                  {"own_key", text_or_null(all.key)},
                                                  {"own_key_error", text_or_null(all.key_error)},
                                                  {"keyring", text_or_null(all.keyring)},
                                                  {"keyring_keys", fmt::format("{}", all.keyring_keys)},
                                                  {"keyring_error", text_or_null(all.keyring_error)}})}}));
}

int info(bool as_json) {
  Information all;
  find_parts(all);
  look_at_machine(all);
  look_at_keys(all);
  const int exit_code = all.is_configuration_bad() ? exit_codes::bad_configuration : exit_codes::ok;
  if (as_json)
    print_json(all, exit_code);
  else
    print_text(all);
  std::fflush(stdout);
  for (const auto& error : {all.key_error, all.keyring_error})
    if (!error.empty()) fmt::print(stderr, "ifunc info: {}\n", error);
  return exit_code;
}

}  // namespace

void add_info(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("info", "Show what this installation has, and what it lacks and how to get that");
  sub->footer(
      "Versions, where each part is loaded from, transports, CPU, limits, home and keys. It opens no connection.\n\n"
      "Exit codes: 0 what is there can be used, be it that optional parts are missing; 2 wrong usage; 78 a key or the\n"
      "keyring cannot be used.");
  const auto as_json = std::make_shared<bool>(false);
  sub->add_flag("--json", *as_json, "As a JSON object");
  sub->callback([as_json, &exit_code] { exit_code = info(*as_json); });
}

}  // namespace tc::command
