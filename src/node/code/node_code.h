// SPDX-License-Identifier: Apache-2.0
//
// The one home of code in a node. The life of a code, and who takes each step:
//
//   registered ... the application has it (Node::register_bundle). Codes finds it by name and by content.
//   sent ......... CallSender sends it with the first call. Codes keeps it, to send it again when the peer dropped it.
//
//   asked for .... a call names code that is not here: CallReceiver sends NEED, and the call waits.
//   arriving ..... CallReceiver reads the bundle and asks the Authority what it may do. Without rights it ends here.
//   loading ...... CodeLoader::load():
//     a slice runs here ....... Codes::load(): target::CodeStore checks and links it; CodeShares charges the keys that
//                               brought it with its bytes
//     only bitcode, no JIT .... CompileRequests asks the node named by `compile-at`, and the calls wait for the object
//   ready ........ calls run it (target/receiver.h). The store compiles it for this CPU in the background.
//   passed on .... an ifunc forwards it to another kind of CPU: SliceRequests requests the slices from the node that sent it here.
//   freed ........ the store needs room, or a key that brought or signed it was revoked. Numbers, names and shares forget it
//                  (Node::forget_code), and the next call of it starts at "asked for".
//
// Thread: the node's.
#pragma once

#include "node/code/code_loader.h"
#include "node/code/slices.h"
#include "node/remote_compile/compiles_for_peers.h"

namespace tc::node {

struct NodeCode {
  NodeCode(const Common& common, target::Executor& executor, Links& links, LocalCalls& local_calls)
      : codes(common, executor),
        slices(common, codes, links),
        loader(common, codes, slices, links, local_calls),
        compiles_for_peers(common, links) {}

  Codes codes;
  SliceRequests slices;
  CodeLoader loader;
  CompilesForPeers compiles_for_peers;

  // Goes on with calls whose slices or compilations have come, or will never come.
  void deliver() {
    slices.deliver();
    loader.deliver();
  }
  // What must be done now and then.
  void housekeep() {
    codes.store().housekeeping();
    slices.tick();
    loader.requests().tick();
  }
  void on_link_lost(const Link& link, uint64_t link_id) {
    slices.on_link_lost(link);
    loader.requests().on_link_lost(link);
    compiles_for_peers.forget(link_id);
  }
  // The store is about to free it.
  void forget(target::Code& code) {
    slices.forget(code.id());
    codes.forget(code);
  }
};

}  // namespace tc::node
