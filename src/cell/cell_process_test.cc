// SPDX-License-Identifier: Apache-2.0
#include "cell/cell_process.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cell/testing/cell_test_kit.h"

namespace tc::cell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::order;
using ::testing::Pair;
using testing::TestCell;
using testing::What;

// Data that a node and a cell share.
class SharedData {
 public:
  explicit SharedData(std::string_view text) : file_(::memfd_create("test-shared", MFD_CLOEXEC)), size_(text.size()) {
    EXPECT_EQ(::write(file_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  int descriptor() const { return file_.get(); }
  size_t size() const { return size_; }
  std::string text() const {
    std::string now(size_, '\0');
    EXPECT_EQ(::pread(file_.get(), now.data(), size_, 0), static_cast<ssize_t>(size_));
    return now;
  }

 private:
  Fd file_;
  size_t size_;
};

TEST(CellProcess, a_call_replies) {
  TestCell cell;
  const auto heard = cell.ready().call(order(What::echo, {}, "hello"));
  EXPECT_TRUE(heard.ended);
  EXPECT_FALSE(heard.failed);
  EXPECT_EQ(heard.reply, "hello");
}

TEST(CellProcess, has_nothing_of_the_environment_and_is_no_part_of_the_process_group) {
  TestCell cell;
  cell.ready();
  const auto pid = cell.cell->pid();
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
  const std::string environment{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(environment.empty() || environment.starts_with("LD_LIBRARY_PATH=")) << environment;
  EXPECT_FALSE(environment.contains("PATH=/"));
  EXPECT_EQ(::getpgid(pid), pid);
}

TEST(CellProcess, calls_come_one_after_the_other) {
  TestCell cell;
  cell.ready();
  for (int i = 0; i < 1000; ++i) {
    const auto text = std::to_string(i);
    ASSERT_EQ(cell.call(order(What::echo, {}, text)).reply, text);
  }
}

TEST(CellProcess, a_second_call_is_refused_while_one_runs) {
  TestCell cell;
  cell.ready().begin(order(What::loop));
  const auto refused = cell.cell->run({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_BUSY);
}

TEST(CellProcess, a_long_payload_and_a_long_reply_go_in_parts) {
  TestCell cell({.ring_bytes = 16 * 1024});
  std::string text(3'000'001, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  EXPECT_EQ(cell.ready().call(order(What::echo, {}, text)).reply, text);
  EXPECT_EQ(cell.call(order(What::echo, {}, "short")).reply, "short");
}

TEST(CellProcess, payloads_of_all_small_sizes_arrive) {
  TestCell cell({.ring_bytes = 4096});
  cell.ready();
  for (size_t size = 0; size < 3000; size += 7) {
    const std::string text(size, static_cast<char>('a' + size % 26));
    ASSERT_EQ(cell.call(order(What::echo, {}, text)).reply, text);
  }
}

TEST(CellProcess, a_call_asks_and_its_node_answers) {
  TestCell cell;
  cell.on_ask = [&](const Ask& ask) {
    EXPECT_EQ(ask.kind, AskKind::forward);
    EXPECT_EQ(ask.node, 7u);
    EXPECT_EQ(as_text(ask.payload), "onward");
    EXPECT_TRUE(cell.cell->answer({.status = TC_ERR_NOT_FOUND}));
    EXPECT_FALSE(cell.cell->answer({.status = TC_OK}));
  };
  EXPECT_EQ(cell.ready().call(order(What::forward, {7}, "onward")).number(), uint64_t{TC_ERR_NOT_FOUND});
}

TEST(CellProcess, a_call_that_was_forwarded_does_not_reply_any_more) {
  TestCell cell;
  cell.on_ask = [&](const Ask&) { EXPECT_TRUE(cell.cell->answer({.status = TC_OK, .first = 1})); };
  const auto heard = cell.ready().call(order(What::forward, {1}));
  EXPECT_TRUE(heard.ended);
  EXPECT_EQ(heard.reply, std::nullopt);
}

TEST(CellProcess, a_reply_that_nobody_wants_is_not_sent) {
  TestCell cell;
  cell.ready().begin(order(What::echo, {}, "hello"), false, false);
  EXPECT_TRUE(cell.run_until([&] { return cell.heard.ended; }));
  EXPECT_EQ(cell.heard.reply, std::nullopt);
}

TEST(CellProcess, a_call_replies_once) {
  TestCell cell;
  const auto heard = cell.ready().call(order(What::twice));
  EXPECT_EQ(heard.reply, "one");
  EXPECT_THAT(heard.log, ElementsAre(Pair(3, "replied twice")));
}

TEST(CellProcess, a_call_logs_and_fails_with_its_first_words) {
  TestCell cell;
  const auto heard = cell.ready().call(order(What::talk));
  EXPECT_THAT(heard.log, ElementsAre(Pair(2, "about to fail")));
  EXPECT_TRUE(heard.failed);
  EXPECT_EQ(heard.code, 42);
  EXPECT_EQ(heard.message, "as it was told to");
}

TEST(CellProcess, an_exchange_goes_on_while_both_sides_sleep_in_between) {
  TestCell cell;
  cell.ready();
  for (int i = 0; i < 20; ++i) {
    cell.cell->set_sleeping(true);
    Channel::barrier();
    cell.begin(order(What::echo, {}, "hello"));
    pollfd watched{cell.cell->descriptor(), POLLIN, 0};
    ASSERT_TRUE(cell.cell->has_frames() || ::poll(&watched, 1, 10'000) == 1);
    cell.cell->set_sleeping(false);
    ASSERT_TRUE(cell.run_until([&] { return cell.heard.ended; }));
  }
}

// ---- Data

TEST(CellProcess, data_that_was_mapped_is_read_by_name) {
  TestCell cell;
  const SharedData board("what is written here");
  cell.ready();
  ASSERT_TRUE(cell.cell->map_data("board", board.descriptor(), board.size(), false));
  ASSERT_TRUE(cell.run_until([&] { return !cell.mapped.empty(); }));
  EXPECT_THAT(cell.mapped, ElementsAre(Pair(TC_OK, "board")));
  EXPECT_EQ(cell.call(order(What::read, {}, std::string_view("board", 6))).reply, board.text());
}

TEST(CellProcess, data_is_mapped_when_a_call_asks_for_it) {
  TestCell cell;
  const SharedData board("what is written here");
  cell.on_ask = [&](const Ask& ask) {
    EXPECT_EQ(ask.kind, AskKind::data);
    EXPECT_EQ(ask.name, "board");
    EXPECT_TRUE(cell.cell->map_data("board", board.descriptor(), board.size(), false));
    EXPECT_TRUE(cell.cell->answer({}));
  };
  EXPECT_EQ(cell.ready().call(order(What::read, {}, std::string_view("board", 6))).reply, board.text());
}

TEST(CellProcess, data_that_does_not_exist_is_not_found) {
  TestCell cell;
  cell.on_ask = [&](const Ask&) { EXPECT_TRUE(cell.cell->answer({.status = TC_ERR_NOT_FOUND})); };
  const auto heard = cell.ready().call(order(What::read, {}, std::string_view("board", 6)));
  EXPECT_TRUE(heard.failed);
  EXPECT_EQ(heard.message, "there is no such data");
}

TEST(CellProcess, writable_data_is_written) {
  TestCell cell;
  const SharedData board("what is written here");
  cell.ready();
  ASSERT_TRUE(cell.cell->map_data("board", board.descriptor(), board.size(), true));
  (void)cell.call(order(What::write, {0, 'W'}, std::string_view("board", 6)));
  EXPECT_EQ(board.text(), "What is written here");
}

TEST(CellProcess, a_write_to_read_only_data_ends_the_cell_and_changes_nothing) {
  TestCell cell;
  const SharedData board("what is written here");
  cell.ready();
  ASSERT_TRUE(cell.cell->map_data("board", board.descriptor(), board.size(), false));
  const auto ending = cell.end_of(order(What::write, {0, 'W'}, std::string_view("board", 6)));
  EXPECT_EQ(ending.kind, Ending::Kind::crashed);
  EXPECT_EQ(ending.signal, SIGSEGV);
  EXPECT_EQ(board.text(), "what is written here");
}

TEST(CellProcess, more_data_than_the_limit_of_memory_is_mapped) {
  TestCell cell({.memory_bytes = uint64_t{16} << 20});
  const Fd file(::memfd_create("test-large", MFD_CLOEXEC));
  constexpr uint64_t size = uint64_t{1} << 33;
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
  cell.ready();
  ASSERT_TRUE(cell.cell->map_data("large", file.get(), size, true));
  ASSERT_TRUE(cell.run_until([&] { return !cell.mapped.empty(); }));
  EXPECT_THAT(cell.mapped, ElementsAre(Pair(TC_OK, "large")));
}

TEST(CellProcess, data_that_a_call_may_not_have_is_forgotten_and_its_bytes_are_not_given_for_anything_else) {
  TestCell cell({.memory_bytes = uint64_t{16} << 20});
  const SharedData board("what is written here");
  cell.ready();
  const auto memory = [&] {
    rlimit limit{};
    EXPECT_EQ(::prlimit(cell.cell->pid(), RLIMIT_AS, nullptr, &limit), 0);
    return limit.rlim_cur;
  };
  const auto before = memory();
  ASSERT_TRUE(cell.cell->map_data("board", board.descriptor(), board.size(), false));
  ASSERT_TRUE(cell.run_until([&] { return !cell.mapped.empty(); }));
  EXPECT_EQ(memory(), before + board.size());
  cell.on_ask = [&](const Ask&) { EXPECT_TRUE(cell.cell->answer({.status = TC_ERR_NOT_FOUND})); };
  cell.forgets_data = true;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cell.call(order(What::read, {}, std::string_view("board", 6))).message, "there is no such data");
    EXPECT_EQ(memory(), before);
  }
}

// ---- Symbols and addresses

TEST(CellProcess, the_target_args_are_data_that_has_been_mapped) {
  TestCell cell;
  cell.ready();
  const Fd file(::memfd_create("test-target-args", MFD_CLOEXEC));
  const uint64_t value = 4711;
  ASSERT_EQ(::write(file.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
  ASSERT_TRUE(cell.cell->map_data(std::string(target_args_name), file.get(), sizeof value, false));
  EXPECT_EQ(cell.call(order(What::target), true).number(), value);
  EXPECT_EQ(cell.call(order(What::target), true).number(), value);
}

TEST(CellProcess, symbols_of_the_libraries_it_was_given_are_found) {
  TestCell cell({.libraries = {"libm.so.6", "libc.so.6", "libnot-there.so"}});
  cell.ready();
  ASSERT_TRUE(cell.cell->resolve("libm.so.6", "cos"));
  ASSERT_TRUE(cell.cell->resolve("libm.so.6", "no_such_function"));
  ASSERT_TRUE(cell.cell->resolve("libnot-there.so", "cos"));
  ASSERT_TRUE(cell.cell->resolve("libpthread.so.0", "cos"));
  ASSERT_TRUE(cell.cell->resolve("", "tc_reply"));
  ASSERT_TRUE(cell.cell->resolve("libm.so.6", "system"));  // of the C library, which libm needs itself
  ASSERT_TRUE(cell.cell->resolve("libm.so.6", "time"));
  ASSERT_TRUE(cell.cell->resolve("libc.so.6", "time"));  // of the vDSO
  ASSERT_TRUE(cell.run_until([&] { return cell.resolved.size() == 8; }));
  EXPECT_NE(cell.resolved[0], 0u);
  EXPECT_EQ(cell.resolved[1], 0u);
  EXPECT_EQ(cell.resolved[2], 0u);
  EXPECT_EQ(cell.resolved[3], 0u);
  EXPECT_EQ(cell.resolved[4], reinterpret_cast<uintptr_t>(cell.cell->symbol("tc_reply")));
  EXPECT_EQ(cell.resolved[5], 0u);
  EXPECT_EQ(cell.resolved[6], 0u);
  EXPECT_NE(cell.resolved[7], 0u);
  EXPECT_NE(cell.cell->symbol("memcpy"), nullptr);
  EXPECT_EQ(cell.cell->symbol("system"), nullptr);
}

// ---- Life

TEST(CellProcess, it_leaves_when_it_is_told_to) {
  TestCell cell;
  cell.ready().cell->end();
  EXPECT_EQ(cell.ending().kind, Ending::Kind::left);
}

TEST(CellProcess, one_that_has_ended_takes_no_calls) {
  TestCell cell;
  cell.ready().cell->end();
  EXPECT_EQ(cell.ending().kind, Ending::Kind::left);
  EXPECT_FALSE(cell.cell->is_idle());
  EXPECT_EQ(cell.cell->run({}).error().code, TC_ERR_BUSY);
  EXPECT_FALSE(cell.cell->next());
}

TEST(CellProcess, a_loop_without_end_is_killed) {
  TestCell cell;
  cell.ready().begin(order(What::loop));
  cell.cell->kill("its call took too long");
  const auto ending = cell.ending();
  EXPECT_EQ(ending.kind, Ending::Kind::killed);
  EXPECT_EQ(ending.signal, SIGKILL);
  EXPECT_EQ(ending.text(), "was killed: its call took too long");
}

TEST(CellProcess, a_cell_that_is_destroyed_in_a_call_is_gone) {
  pid_t pid = 0;
  {
    TestCell cell;
    cell.ready().begin(order(What::loop));
    pid = cell.cell->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(CellProcess, a_program_that_is_not_there_is_not_started) {
  EXPECT_EQ(CellProcess::find_program("/no/such/program").error().code, TC_ERR_NOT_FOUND);
  try {
    TestCell cell({.program = "/no/such/program"});
    ADD_FAILURE() << "it was started";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/no/such/program"));
  }
}

TEST(CellProcess, a_program_that_is_no_cell_has_not_started) {
  TestCell cell({.program = "/bin/false"});
  const auto ending = cell.ending();
  EXPECT_EQ(ending.kind, Ending::Kind::not_started);
  EXPECT_EQ(ending.text(), "did not start: ended with exit code 1");
}

TEST(CellProcess, a_program_that_never_becomes_ready_is_killed) {
  TestCell cell({.program = "/bin/cat", .start_ms = 1});
  EXPECT_TRUE(cell.run_until([&] {
    cell.cell->check();
    return cell.cell->ending().has_value();
  }));
  EXPECT_EQ(cell.ending().text(), "did not start: it did not become ready in time");
}

TEST(CellProcess, an_address_that_is_taken_is_told) {
  testing::CellCode code;
  auto half = code.code();
  half.address = reinterpret_cast<void*>(uint64_t{1} << 62);
  const auto program = CellProcess::find_program();
  ASSERT_TRUE(program) << program.error().message;
  auto cell = CellProcess::start({.program = *program, .code = half, .data = code.data()});
  ASSERT_TRUE(cell) << cell.error().message;
  ASSERT_TRUE(test::run_until([&] { return (*cell)->ending().has_value(); },
                              [&] {
                                (void)(*cell)->next();
                                (*cell)->check();
                              }));
  EXPECT_THAT((*cell)->ending()->text(), HasSubstr("did not start: mapping 67108864 bytes for code at"));
}

}  // namespace
}  // namespace tc::cell
