// SPDX-License-Identifier: Apache-2.0
#include "wire/hello.h"

#include "wire/frame.h"
#include "wire/text.h"

namespace tc::wire {

Bytes encode_hello(const Hello& hello) {
  Bytes out;
  Writer w(out);
  // The protocol version comes first and stays there, so that any two versions can tell each other apart.
  w.u32(hello.protocol).u8(hello.abi).u64(hello.instance).u32(hello.node_id).u64(hello.max_message);
  w.str8(hello.name).str8(hello.address).str8(hello.triple).str8(hello.cpu);
  return out;
}

Result<Hello> decode_hello(ByteView body) {
  Reader in(body);
  Hello hello;
  hello.protocol = in.u32();
  if (in.ok() && hello.protocol != protocol_version)
    return fail(TC_ERR_VERSION, "the peer speaks protocol version {} when this build speaks version {}", hello.protocol,
                protocol_version);
  hello.abi = in.u8();
  hello.instance = in.u64();
  hello.node_id = in.u32();
  hello.max_message = in.u64();
  hello.name = in.str8();
  hello.address = in.str8();
  hello.triple = in.str8();
  hello.cpu = in.str8();
  TC_CHECK(in.finish_exactly("greeting of a node"));
  for (const auto& label : {hello.name, hello.address, hello.triple, hello.cpu})
    if (!printable(label))
      return fail(TC_ERR_MALFORMED, "greeting of a node: a label holds bytes that cannot be printed");
  return hello;
}

}  // namespace tc::wire
