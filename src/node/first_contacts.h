// SPDX-License-Identifier: Apache-2.0
//
// The keys that answered when this node first connected to their addresses. The file known-nodes keeps them
// (trust/known_nodes.h). A file may block, so a thread of its own writes it, which starts with the first contact. Until a
// key is written, and when it cannot be, it is known here, as long as this process lives.
//
// Thread: the node's. None of it blocks but the destructor, which waits until all is written, and find(), which reads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "trust/known_nodes.h"

namespace tc::node {

class FirstContacts {
 public:
  // What became of a key: TC_OK when the file has it. TC_ERR_BUSY: another process has written another key for that address
  // meanwhile. On either thread.
  using Told = std::function<void(const Status& kept)>;

  // Nothing: there is no place for the file.
  explicit FirstContacts(std::optional<trust::KnownNodes> file) : file_(std::move(file)) {}
  ~FirstContacts();
  FirstContacts(const FirstContacts&) = delete;
  FirstContacts& operator=(const FirstContacts&) = delete;

  // The key that is known for an address; nothing: none is. As KnownNodes::find().
  Result<std::optional<trust::PublicKey>> find(std::string_view address) const;
  void remember(const std::string& address, const trust::PublicKey& key, Told told);
  // Has the file got another key meanwhile for the address of a key here? The file's key counts from now on.
  bool has_conflicts() const noexcept { return has_conflicts_.load(std::memory_order_acquire); }
  std::vector<trust::PublicKey> take_conflicts();

 private:
  struct Contact {
    std::string address;
    trust::PublicKey key;
    Told told;
  };

  Status start();
  void run();
  Status write(const Contact& contact);

  const std::optional<trust::KnownNodes> file_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, trust::PublicKey, std::less<>> new_;  // not in the file
  std::deque<Contact> waiting_;
  std::vector<trust::PublicKey> conflicts_;
  std::atomic<bool> has_conflicts_{false};
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tc::node
