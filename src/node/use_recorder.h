// SPDX-License-Identifier: Apache-2.0
//
// Writes down when keys of the keyring were last used (trust/last_uses.h). A file may block, so a thread of its own writes
// it, at once and then at most once a minute. The thread starts with the first use: most nodes have no such peers.
//
// Thread: the node's; none of it blocks but the destructor, which waits until the last uses are written.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "trust/last_uses.h"

namespace tc::node {

class UseRecorder {
 public:
  // Told once that the file cannot be written, on either thread.
  using Report = std::function<void(const std::string& why)>;

  UseRecorder(std::filesystem::path file, Report report,
              std::chrono::milliseconds pause = std::chrono::milliseconds(60'000));
  ~UseRecorder();
  UseRecorder(const UseRecorder&) = delete;
  UseRecorder& operator=(const UseRecorder&) = delete;

  void record(const trust::PublicKey& key, trust::Time now);

 private:
  bool start();
  void run();
  void write(const trust::UseTimes& uses) noexcept;

  const trust::LastUses file_;
  const Report report_;
  const std::chrono::milliseconds pause_;  // between two times that the file is written
  bool has_failed_to_start_ = false;
  bool has_reported_ = false;  // of the thread
  std::mutex mutex_;
  std::condition_variable changed_;
  trust::UseTimes pending_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tc::node
