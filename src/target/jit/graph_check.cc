// SPDX-License-Identifier: Apache-2.0
#include "target/jit/graph_check.h"

namespace tc::target::jit {

namespace {

using llvm::StringRef;

bool runs_at_start_or_end(StringRef section) {
  for (const auto* prefix : {".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors"})
    if (section.starts_with(prefix)) return true;
  return false;
}

bool is_thread_local(StringRef section) { return section.starts_with(".tdata") || section.starts_with(".tbss"); }

Status check_section(llvm::jitlink::LinkGraph& graph, llvm::jitlink::Section& section) {
  const auto name = section.getName();
  if (section.blocks().empty()) return {};
  if (runs_at_start_or_end(name))
    return fail(TC_ERR_COMPILE, "the object has static constructors or destructors (section {}), which nobody would run",
                name.str());
  if (is_thread_local(name))
    return fail(TC_ERR_COMPILE, "the object has thread-local variables (section {}), which are not supported", name.str());
  for (auto* block : section.blocks()) {
    for (const auto& edge : block->edges()) {
      if (!edge.getTarget().isExternal()) continue;
      const StringRef kind = graph.getEdgeKindName(edge.getKind());
      if (kind.contains("TLS") || kind.contains("TLV"))
        return fail(TC_ERR_COMPILE, "the object uses the thread-local variable {}, which is not supported",
                    edge.getTarget().hasName() ? StringRef(*edge.getTarget().getName()).str() : "without a name");
    }
  }
  return {};
}

}  // namespace

Status check_graph(llvm::jitlink::LinkGraph& graph, const llvm::Triple& host) {
  const auto& triple = graph.getTargetTriple();
  if (triple.getArch() != host.getArch())
    return fail(TC_ERR_COMPILE, "the object is for {} when this node is {}", triple.getArchName().str(),
                host.getArchName().str());
  for (auto& section : graph.sections()) TC_CHECK(check_section(graph, section));
  return {};
}

bool handles_exceptions(llvm::jitlink::LinkGraph& graph) {
  for (auto& section : graph.sections())
    if (section.getName().starts_with(".gcc_except_table")) return true;
  return false;
}

}  // namespace tc::target::jit
