// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a peer says: greeting and frames of the stream, in any order, to a real node that holds real code. The node must answer or hang up, and be as empty at the end as it was before.
//
// The input is a script: one byte says what is done, and what follows it is taken from the input. So the fuzzer need
// not find content ids and greetings by itself, only what to do with them.
#include <algorithm>
#include <cstdlib>

#include "node/node.h"
#include "node/testing/raw_peer.h"
#include "target/testing/object_builder.cc"  // NOLINT: not a library of its own
#include "target/testing/object_builder.h"

namespace {

using namespace tc;              // NOLINT
using node::test::call_header;   // NOLINT
using node::test::code_section;  // NOLINT
using node::test::operator+;     // NOLINT
using wire::Kind;

void expect(bool truth) {
  if (!truth) std::abort();
}

const Bundle& answering_code() {
  static const Bundle bundle =
      target::testing::bundle_with("answering", target::testing::calling_object("tc_reply").build());
  return bundle;
}
const Bundle& counting_code() {
  static const Bundle bundle = target::testing::bundle_with("counting", target::testing::counting_object().build());
  return bundle;
}

class Play {
 public:
  explicit Play(ByteView script) : script_(script), peer_(network_) {
    auto config = node::Config::defaults();
    config.name = "fuzzed";
    config.listen = "n1";
    config.log = "off";
    config.code.use_bitcode = false;
    config.max_message = 64 * 1024;
    config.execution_limit_ms = 0;  // a thread for each input would tell nothing
    node_ = std::move(*node::Node::create(std::move(config), [this](const node::Config&, transport::Events& events) {
      return Result<std::unique_ptr<transport::Transport>>(network_.join(events));
    }));
    node_->executor().target_args = &counter_;
  }

  void run() {
    peer_.connect("n1");
    for (int steps = 0; script_.remaining() != 0 && steps < 200; ++steps) {
      step();
      turn();
    }
    peer_.vanish();
    for (int i = 0; i < 4; ++i) turn();
    expect(node_->stat("links").value() <= 2);  // both ends of one to itself, when a return address leads there
  }

 private:
  void turn() {
    peer_.progress();
    node_->poll();
  }

  Bytes some() {
    const auto size = std::min<size_t>(script_.u16() & 0x3fff, script_.remaining());
    const auto view = script_.bytes(size);
    return {view.begin(), view.end()};
  }
  const Bundle& code() { return (script_.u8() & 1) != 0 ? counting_code() : answering_code(); }
  Bytes front(uint8_t flags) {
    Bytes out;
    if ((flags & wire::flag_call_header) != 0) {
      const auto token = script_.u8();
      out = call_header(token, script_.u8() & 1);
    }
    if ((flags & wire::flag_return_address) != 0)
      out = std::move(out) + wire::encode_return_address({script_.u8(), 7, "n1"});
    return out;
  }

  void step() {
    const auto what = script_.u8();
    const auto number = static_cast<uint32_t>(script_.u8());
    const auto flags = static_cast<uint8_t>(what >> 4);
    switch (what & 15) {
      case 0: return again(some());
      case 1: return (void)peer_.send(static_cast<Kind>(script_.u8() & 15), flags, number, some());
      case 2: {
        auto body = front(flags & 3);
        body = std::move(body) + code_section(code());
        return (void)peer_.send(Kind::call_code, flags & 3, number, std::move(body) + some());
      }
      case 3: {
        auto body = front(flags & 7);
        return (void)peer_.send(Kind::call, flags & 7, number, std::move(body) + some());
      }
      case 4: return (void)peer_.send(Kind::code, 0, number, code_section(code()));
      case 5: return (void)peer_.send(Kind::fragment, 0, number & 3, some());
      case 6: return (void)peer_.send(Kind::fragment, 0, number & 1, wire::make_frame(Kind::reply, 0, 0, some()));
      case 7:
        return (void)peer_.send(Kind::fragment, 0, number & 1, wire::make_frame(Kind::call, flags, number, some()));
      case 8: return node_->store().evict(code().id());
      case 9: return again(wire::encode_hello(node::test::RawPeer::hello()));
      case 10: {  // a greeting with one change
        auto hello = wire::encode_hello(node::test::RawPeer::hello());
        const auto at = script_.u16() % hello.size();
        hello[at] ^= static_cast<std::byte>(script_.u8());
        return again(hello);
      }
      case 11: return (void)peer_.send(Kind::barrier, number & 3, wire::encode_barrier(script_.u8()));
      case 12: {  // one change to a call with code
        auto body = front(flags & 3);
        body = std::move(body) + code_section(code());
        const auto at = script_.u16() % body.size();
        body[at] ^= static_cast<std::byte>(script_.u8());
        return (void)peer_.send(Kind::call_code, flags & 3, number, body);
      }
      default: return turn();
    }
  }

  // Begins again, with that greeting.
  void again(const Bytes& greeting) {
    peer_.vanish();
    turn();
    peer_.peer.reset();
    peer_.connect("n1", greeting);
  }

  Reader script_;
  uint64_t counter_ = 0;
  transport::SimulatedNetwork network_;
  std::unique_ptr<node::Node> node_;
  node::test::RawPeer peer_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Play({reinterpret_cast<const std::byte*>(data), size}).run();
  return 0;
}
