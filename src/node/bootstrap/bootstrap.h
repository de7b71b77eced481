// SPDX-License-Identifier: Apache-2.0
//
// How the nodes of a cluster learn their numbers, and each other's addresses and public keys. Nobody connects here: links
// are made when nodes first have something to say to each other. They are encrypted without any keyring, because the launcher that
// brings the nodes together vouches for their keys.
//
//   directory.h  files in a directory that all hosts see
//   pmix_host.h  the launcher that started the processes (mpirun, srun), by PMIx
//
// What others publish is foreign: bounded, and checked before it is believed.
//
// Thread: the one that makes the node. Waiting does not drive the node: peers that are ready earlier and connect wait
// in the listener's queue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "trust/key_pair.h"

namespace tc::node::bootstrap {

// Node numbers are below this, and so are counts. Stops a launcher or a file from making us allocate at will.
inline constexpr uint32_t max_nodes = 1u << 16;

enum class Kind : uint8_t {
  none,       // the cluster's addresses are configured, or there is no cluster
  automatic,  // pmix when a PMIx launcher started this process, else none
  directory,
  pmix,
};

struct Options {
  Kind kind = Kind::none;
  std::string directory;
  uint32_t nodes = 0;  // how many; 0: not said
  uint32_t timeout_ms = 30'000;
  std::string pmix_plugin;  // path of libthreechains_pmix.so; empty: where plug-ins are looked for
};

// "none", "auto", "pmix" or "dir:PATH" into `options`.
Status parse(std::string_view text, Options& options);

struct Cluster {
  uint32_t id = 0;                     // our number
  std::vector<std::string> addresses;  // by number, ours as well
  std::vector<trust::PublicKey> keys;  // by number, ours as well
};

// What a node publishes.
struct Contact {
  std::string address;
  trust::PublicKey key;
};

// What a node publishes through is kept until the node ends.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  // Publishes our contact, takes the number `id` or, without one, any, and waits until all are known. Once.
  // TC_ERR_TIMEOUT names who did not come. TC_ERR_DENIED: what others publish there cannot be believed.
  virtual Result<Cluster> meet(const Contact& self, std::optional<uint32_t> id, Deadline deadline) = 0;
};

// Null when there is nothing to be learnt. TC_ERR_INVALID when the options do not go together; TC_ERR_UNSUPPORTED.
Result<std::unique_ptr<Bootstrap>> make(const Options& options);

// Has a PMIx launcher started this process?
bool launched_by_pmix() noexcept;

// An address that somebody else published: 1 to 255 printable characters without blanks and commas.
Status check_address(std::string_view address, std::string_view whose);

// Can the node at `address`, on another host, not be reached from here? An address of the loopback device: everybody
// has one of his own.
bool is_loopback_address(std::string_view address) noexcept;

// "node 5", "nodes 5 and 7", "nodes 1, 2, 3 and 4 more".
std::string name_nodes(const std::vector<uint32_t>& nodes);

// What to do about a loopback address among several hosts.
inline constexpr const char* routable_hint = "set listen to 0.0.0.0:0 or to an address that other hosts can reach";

}  // namespace tc::node::bootstrap
