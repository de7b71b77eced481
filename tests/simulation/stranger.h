// SPDX-License-Identifier: Apache-2.0
//
// Somebody who may connect to the nodes of a simulated cluster and whose code may run nowhere. She says of herself what she
// likes, and sends frames that are random, almost right, or those of others.
//
// Thread: one.
#pragma once

#include <string>
#include <vector>

#include "node/testing/raw_peer.h"
#include "simulation/environment.h"

namespace tc::simulation {

class Stranger {
 public:
  // `code`: what she would have them run.
  Stranger(transport::SimulatedNetwork& network, const std::string& address, const Bundle& code)
      : address_(address), code_(node::test::code_section(code)), peer_(network) {
    peer_.listen(address);
  }

  // What she does to one of the nodes at these addresses.
  void act(Dice dice, size_t node, const std::vector<std::string>& addresses);
  void progress();
  void vanish();

 private:
  void connect(Dice& dice, size_t node, const std::vector<std::string>& addresses);
  void send(Dice& dice);
  void answer(const node::test::RawPeer::Frame& frame);
  Bytes body_of(Dice& dice, wire::Kind kind) const;

  const std::string address_;
  const Bytes code_;
  node::test::RawPeer peer_;
  bool is_connected_ = false;
};

}  // namespace tc::simulation
