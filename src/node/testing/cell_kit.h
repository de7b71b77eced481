// SPDX-License-Identifier: Apache-2.0
//
// For tests: what a node with cells is asked, and what is seen of its cells from outside.
//
// Thread: the test's.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "cell/testing/cell_test_kit.h"
#include "node/testing/node_test_kit.h"

namespace tc::node::test {

using cell::testing::What;

// A payload of the ifunc `misbehave`.
inline std::string ask_to(What what, std::vector<uint64_t> arguments = {}, std::string_view rest = {}) {
  return std::string(as_text(cell::testing::order(what, std::move(arguments), rest)));
}
// It answers with the process that it runs in.
inline std::string ask_for_process() { return ask_to(What::system, {SYS_getpid}); }
inline pid_t process_of(const Future& future) {
  uint64_t number = 0;
  EXPECT_EQ(future.bytes.size(), sizeof number) << future.message;
  if (future.bytes.size() == sizeof number) std::memcpy(&number, future.bytes.data(), sizeof number);
  return static_cast<pid_t>(number);
}

// The processes that this one has started, cells among them, and that were not waited for.
inline std::set<pid_t> children() {
  std::set<pid_t> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    char state = 0;
    pid_t parent = 0;
    const auto behind_name = line.rfind(')');
    if (behind_name == std::string::npos) continue;  // it has ended meanwhile
    if (std::sscanf(line.c_str() + behind_name + 1, " %c %d", &state, &parent) == 2 && parent == ::getpid())
      found.insert(std::stoi(name));
  }
  return found;
}

// Memory that cells can have, too.
class SharedMemory {
 public:
  explicit SharedMemory(size_t size) : size_(size), file_(::memfd_create("test-data", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(file_.get(), static_cast<off_t>(size)), 0);
    data_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~SharedMemory() { ::munmap(data_, size_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  char* data() const noexcept { return static_cast<char*>(data_); }
  std::string text() const { return {data(), size_}; }
  Status expose(Node& node, const std::string& name) const {
    return node.expose(name, data_, size_, SharedFile::of(file_.get(), size_).value());
  }

 private:
  size_t size_;
  Fd file_;
  void* data_ = nullptr;
};

// The data `gate` of the ifunc `linger`.
class Gate {
 public:
  Status expose(Node& node) const { return memory_.expose(node, "gate"); }
  uint32_t inside() const noexcept { return number(0).load(); }
  void open() const noexcept { number(1).store(1); }
  void shut() const noexcept { number(1).store(0); }

 private:
  std::atomic_ref<uint32_t> number(size_t index) const noexcept {
    return std::atomic_ref(reinterpret_cast<uint32_t*>(memory_.data())[index]);
  }
  SharedMemory memory_{2 * sizeof(uint32_t)};
};

}  // namespace tc::node::test
