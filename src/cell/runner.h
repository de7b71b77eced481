// SPDX-License-Identifier: Apache-2.0
//
// In a cell: runs the calls that the node sends, one at a time, and gives the node what they ask for.
//
// While a call runs, the node hears of its answer, its log and what it asks at once; a call that asks waits for the answer.
// Between calls, the runner polls for a while and sleeps then, as a node does.
//
// Thread: the cell's only one.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "cell/channel.h"
#include "cell/protocol.h"
#include "target/executor.h"
#include "target/float_state.h"
#include "transport/wait_policy.h"

namespace tc::cell {

class Runner final : public target::IfuncHost {
 public:
  struct Library {
    std::string name;
    void* handle = nullptr;  // as dlopen() gave it
  };
  // How code is made known to those who throw exceptions through it; null: nobody throws here.
  struct Unwinder {
    void (*add)(void* frames) = nullptr;
    void (*remove)(void* frames) = nullptr;
  };
  // `begun_call` is told the number of each call whose code is entered (CrashRecord).
  Runner(const Start& start, Channel& channel, int socket, uint32_t& begun_call, std::vector<Library> libraries,
         Unwinder unwinder);

  // Tells the node that calls may come, and runs them until the node ends the cell or is gone.
  Status serve(std::string lacks);

  // ---- target::IfuncHost
  void* data(std::string_view name, size_t* size) noexcept override;
  tc_status_t reply(ByteView bytes) noexcept override;
  tc_status_t forward(uint32_t node, ByteView payload) noexcept override;
  tc_status_t forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept override;
  tc_status_t inject(uint32_t node, std::string_view name, ByteView payload) noexcept override;
  void fail(int32_t code, std::string_view message) noexcept override;
  void log(int level, std::string_view message) noexcept override;

 private:
  class KnownFrames;
  struct Data {
    std::string name;
    void* address;
    size_t size;
  };
  // The call in progress.
  struct Running {
    uint32_t number = 0;
    bool wants_reply = false;
    bool answered = false;
    bool lost_reply = false;  // as there was no memory for it
    bool failed = false;
    int32_t code = 0;
    std::string message;
  };

  Channel::Message wait();
  void sleep();
  void send(ToNode kind, ByteView head, ByteView tail = {});
  Status handle(const Channel::Message& message);
  Status run(const Channel::Message& message);
  void resolve(const Channel::Message& message);
  void* address_of(const Resolve& resolve) const;
  tc_status_t ask(const Ask& ask) noexcept;
  void read_packets();
  void map(const Map& map, const Fd& descriptor);
  void forget_data() noexcept;
  const Data* find_data(std::string_view name) const noexcept;

  target::Executor executor_{*this};
  const target::FloatState floats_ = target::FloatState::now();  // before the first call, and after each
  Channel& channel_;
  transport::Core core_;
  const int socket_;
  uint32_t& begun_call_;
  const std::vector<Library> libraries_;
  const Unwinder unwinder_;
  std::vector<Data> data_;
  Running running_;
  Bytes payload_;  // of the call in progress
  Bytes head_;     // of the message that is sent
};

}  // namespace tc::cell
