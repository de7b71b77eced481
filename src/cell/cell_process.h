// SPDX-License-Identifier: Apache-2.0
//
// The node's side of a cell: starts the process, sends it calls, takes what they say, and knows how it ended.
//
//     start() -> starting -- ready --> idle -- run() --> running -- Ended --> idle
//                    '-------------------'------------------'----> ended: ending() says how
//
// Nothing here waits for the cell; only start() waits for the kernel to have begun the program. The owner calls
//
//     send_on()       in each poll: what the ring had no room for
//     next()          in each poll, until there is nothing: messages of the ring. No system call while there are none
//     check()         when descriptor() is readable, and now and then: bells, deadlines, the end
//     set_sleeping()  around a sleep, as for a ring (transport/ring). While has_backlog(), the sleep is a short one: a cell that
//                     makes room in the ring wakes nobody
//
// The cell is not trusted. What comes from it is copied before it is read, has limits, and must be what this state allows. A cell
// that breaks a rule is killed.
//
// Thread: one at a time. The kernel ends the cell together with the thread that called start(), so that must be one that lives
// as long as the node.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "cell/channel.h"
#include "cell/conversation.h"
#include "cell/ending.h"
#include "cell/protocol.h"

namespace tc::cell {

class CellProcess {
 public:
  // One half of the memory for code: the same bytes at the same address in node and cell.
  struct Half {
    int descriptor = -1;  // stays the caller's
    void* address = nullptr;
    size_t bytes = 0;
  };
  struct Options {
    std::filesystem::path program;  // find_program()
    Half code;                      // the cell can execute it, and never write it
    Half data;
    std::vector<std::string> libraries;  // shared libraries that code may use
    uint32_t node_id = 0, node_count = 1;
    size_t ring_bytes = size_t{128} << 10;
    // Stops a cell that fills the node's memory with one message.
    size_t message_bytes = size_t{1} << 30;
    // What the cell may use beyond what it starts with: a call that takes more is refused by the kernel.
    uint64_t memory_bytes = uint64_t{1} << 30;
    // Stops a cell that never becomes ready.
    uint64_t start_ms = 10'000;
  };

  // `wish` is the path, if not empty; else threechains-cell beside the other programs. TC_ERR_NOT_FOUND.
  static Result<std::filesystem::path> find_program(const std::string& wish = {});
  // TC_ERR_NOT_FOUND: there is no such program. TC_ERR_UNSUPPORTED, TC_ERR_NO_MEMORY, TC_ERR_IO.
  static Result<std::unique_ptr<CellProcess>> start(const Options& options);
  // Kills a cell that lives, and waits until it is gone: a fraction of a millisecond, unless its memory is large. To wait for
  // nothing, kill() first and destroy once ending() is known.
  ~CellProcess();
  CellProcess(const CellProcess&) = delete;

  // ---- What the cell is told

  bool is_starting() const noexcept { return conversation_.is_starting(); }
  bool is_idle() const noexcept { return conversation_.is_idle(); }
  bool is_running() const noexcept { return conversation_.is_running(); }
  // Was the code of that call entered, as the cell says?
  bool has_begun() const noexcept { return crash_.begun_call() == conversation_.call_number(); }
  // Starts a call; the cell must be idle. TC_ERR_BUSY: it is not.
  Status run(const Run& call);
  // The answer to an Ask, exactly one. `answer.first` 1: the call is answered by now, because it was forwarded.
  // TC_ERR_INVALID: nothing was asked.
  Status answer(const Answer& answer);
  // Named data, which the cell maps: a Mapped says whether it could. Code cannot write to it unless `writable`, whatever the
  // descriptor allows here. While an Ask for it waits, map it before the answer. TC_ERR_BUSY: later; TC_ERR_IO.
  Status map_data(const std::string& name, int descriptor, uint64_t size, bool writable);
  // Asks for an address; answered by a Resolved, in the order of the questions, once no call runs. `library` is one of the
  // options' libraries; empty: see also symbol().
  Status resolve(const std::string& library, const std::string& symbol);
  // It leaves, once it is idle.
  void end();
  // It is ended at once, whatever it does.
  void kill(std::string why);

  // ---- What comes from it

  // Something to do for the owner; nothing: not now. Its views are valid until the next next(). May throw
  // std::bad_alloc.
  std::optional<Event> next();
  void check();
  // Readable when check() has something to do ...
  int descriptor() const noexcept { return socket_.get(); }
  // ... but for a cell that does not become ready: not before that time. UINT64_MAX: it is ready, or has been killed.
  uint64_t check_at_ns() const noexcept {
    return conversation_.is_starting() && !is_killed() ? start_deadline_.at_ns() : UINT64_MAX;
  }
  bool is_killed() const noexcept { return killed_because_.has_value() || broken_because_.has_value(); }
  bool has_backlog() const noexcept { return !channel_.is_sent(); }
  // True: some of it went.
  bool send_on() noexcept { return has_backlog() && channel_.progress(); }
  bool has_frames() const noexcept { return channel_.has_frames(); }
  void set_sleeping(bool sleeping) noexcept {
    sleeps_ += sleeping ? 1 : 0;
    channel_.set_sleeping(sleeping);
  }

  // The address in the cell of a function of the ABI, or that compilers call by themselves; null for any other name, and before
  // the cell is ready.
  void* symbol(std::string_view name) const noexcept;
  // Once it has ended, and all that it sent before has been taken.
  const std::optional<Ending>& ending() const noexcept { return ending_; }
  pid_t pid() const noexcept { return child_.pid(); }

 private:
  CellProcess(const Options& options, ChildProcess child, Fd socket, transport::RingMemory rings, CrashMemory crash);
  void break_protocol(Error error);
  void read_bells();
  void on_end_of_socket();
  void find_ending();

  ChildProcess child_;
  Fd socket_;
  Channel channel_;
  Conversation conversation_;
  CrashMemory crash_;
  const Deadline start_deadline_;
  uint64_t data_bytes_ = 0;  // that are mapped
  uint64_t sleeps_ = 0, bells_ = 0;
  bool is_told_to_end_ = false;
  bool is_gone_ = false;     // its end of the socket is closed
  bool is_drained_ = false;  // nothing more came from the ring after its end
  std::optional<std::string> killed_because_;
  std::optional<std::string> broken_because_;
  std::optional<ExitStatus> exit_;
  std::optional<Ending> ending_;
  Ready ready_;
  Bytes head_;  // of the message that is sent
};

}  // namespace tc::cell
