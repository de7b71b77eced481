// SPDX-License-Identifier: Apache-2.0
//
// What code in a cell tries, and what becomes of it.
#include "cell/sandbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "cell/testing/cell_test_kit.h"

namespace tc::cell {
namespace {

using ::testing::HasSubstr;
using testing::order;
using testing::TestCell;
using testing::What;

Ending end_of(const Bytes& order) {
  TestCell cell;
  return cell.ready().end_of(order);
}

Ending end_of_call(long number, std::vector<uint64_t> arguments = {}) {
  arguments.insert(arguments.begin(), static_cast<uint64_t>(number));
  return end_of(order(What::system, std::move(arguments)));
}

int64_t result_of_call(long number, std::vector<uint64_t> arguments = {}) {
  arguments.insert(arguments.begin(), static_cast<uint64_t>(number));
  TestCell cell;
  const auto heard = cell.ready().call(order(What::system, std::move(arguments)));
  EXPECT_TRUE(heard.reply) << cell.ending().text();
  return static_cast<int64_t>(heard.number());
}

void expect_refused(long number, std::vector<uint64_t> arguments = {}) {
  const auto ending = end_of_call(number, std::move(arguments));
  EXPECT_EQ(ending.kind, Ending::Kind::crashed) << ending.text();
  EXPECT_EQ(ending.signal, SIGSYS);
  ASSERT_TRUE(ending.crash);
  EXPECT_EQ(ending.crash->system_call, number);
  EXPECT_THAT(ending.text(), HasSubstr("its code called " + system_call_name(static_cast<int>(number)) + "()"));
}

uint64_t address_of(const char* text) { return reinterpret_cast<uintptr_t>(text); }

TEST(Sandbox, lacks_nothing_that_this_kernel_has) {
  TestCell cell;
  cell.ready();
  ASSERT_TRUE(cell.greeting);
  EXPECT_TRUE(cell.greeting->lacks.empty() || cell.greeting->lacks.starts_with("Landlock")) << cell.greeting->lacks;
}

// The numbers are the kernel's, of LANDLOCK_ACCESS_FS_EXECUTE to LANDLOCK_ACCESS_FS_IOCTL_DEV and so on. The filter of system
// calls forbids nearly all of this, too: no call of a cell shows that Landlock lacks something.
TEST(Landlock, forbids_all_that_each_of_its_versions_knows) {
  constexpr struct {
    long version;
    uint64_t files, network, scopes;
  } known[] = {{1, 0x1fff, 0, 0}, {2, 0x3fff, 0, 0}, {3, 0x7fff, 0, 0}, {4, 0x7fff, 3, 0},
               {5, 0xffff, 3, 0}, {6, 0xffff, 3, 3}, {7, 0xffff, 3, 3}};
  for (const auto& one : known) {
    const auto rules = landlock_rules(one.version);
    EXPECT_EQ(rules.files, one.files) << one.version;
    EXPECT_EQ(rules.network, one.network) << one.version;
    EXPECT_EQ(rules.scopes, one.scopes) << one.version;
  }
}

// ---- Crashes

TEST(Crash, a_store_through_a_null_pointer_is_told) {
  const auto ending = end_of(order(What::store, {0}));
  EXPECT_EQ(ending.kind, Ending::Kind::crashed);
  EXPECT_EQ(ending.signal, SIGSEGV);
  ASSERT_TRUE(ending.crash);
  EXPECT_EQ(ending.crash->address, 0u);
  EXPECT_NE(ending.crash->pc, 0u);
  EXPECT_THAT(ending.text(), HasSubstr("signal 11 (Segmentation fault) at address 0x0, in code at 0x"));
}

TEST(Crash, a_wild_store_is_told_with_its_address_and_where_in_the_code) {
  TestCell cell;
  const auto ending = cell.ready().end_of(order(What::store, {0x123450}));
  ASSERT_TRUE(ending.crash);
  EXPECT_EQ(ending.crash->address, 0x123450u);
  const auto code = cell.code().code();
  const auto begin = reinterpret_cast<uintptr_t>(code.address);
  EXPECT_GE(ending.crash->pc, begin);
  EXPECT_LT(ending.crash->pc, begin + code.bytes);
}

TEST(Crash, a_store_into_the_code_itself_is_refused) {
  TestCell cell;
  cell.ready();
  const auto address = reinterpret_cast<uintptr_t>(cell.code().code().address);
  const auto ending = cell.end_of(order(What::store, {address}));
  EXPECT_EQ(ending.signal, SIGSEGV);
  ASSERT_TRUE(ending.crash);
  EXPECT_EQ(ending.crash->address, address);
}

TEST(Crash, a_recursion_without_end_is_told) {
  const auto ending = end_of(order(What::recurse));
  EXPECT_EQ(ending.kind, Ending::Kind::crashed);
  EXPECT_EQ(ending.signal, SIGSEGV);
  ASSERT_TRUE(ending.crash) << "the handler had no stack of its own";
  EXPECT_NE(ending.crash->pc, 0u);
}

TEST(Crash, a_jump_to_nowhere_is_told_with_the_code_that_jumped) {
  TestCell cell;
  const auto ending = cell.ready().end_of(order(What::call, {0x10}));
  EXPECT_EQ(ending.signal, SIGSEGV);
  ASSERT_TRUE(ending.crash);
  EXPECT_EQ(ending.crash->pc, 0x10u);
  const auto code = cell.code().code();
  const auto begin = reinterpret_cast<uintptr_t>(code.address);
  ASSERT_FALSE(ending.crash->frames.empty());
  EXPECT_GE(ending.crash->frames[0], begin);
  EXPECT_LT(ending.crash->frames[0], begin + code.bytes);
}

TEST(Crash, an_abort_is_told) {
  const auto ending = end_of(order(What::abort));
  EXPECT_EQ(ending.kind, Ending::Kind::crashed);
  EXPECT_EQ(ending.signal, SIGABRT);
  EXPECT_TRUE(ending.crash);
}

TEST(Crash, a_reply_before_the_crash_is_heard) {
  TestCell cell;
  const auto ending = cell.ready().end_of(order(What::store, {8}, "last words"));
  EXPECT_EQ(ending.signal, SIGSEGV);
  EXPECT_EQ(cell.heard.reply, "last words");
}

TEST(Crash, an_exit_is_told_with_its_code) {
  const auto ending = end_of_call(SYS_exit_group, {3});
  EXPECT_EQ(ending.kind, Ending::Kind::exited);
  EXPECT_EQ(ending.exit_code, 3);
}

TEST(Crash, two_hundred_in_a_row_leave_no_descriptor_behind) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  {
    TestCell cell;
  }
  const auto before = descriptors();
  for (int i = 0; i < 200; ++i) {
    const auto ending = end_of(order(What::store, {8}));
    ASSERT_EQ(ending.signal, SIGSEGV) << "cell " << i << ": " << ending.text();
  }
  EXPECT_EQ(descriptors(), before);
}

// ---- System calls

TEST(Sandbox, refuses_processes) {
  expect_refused(SYS_clone, {SIGCHLD});
  expect_refused(SYS_execve);
#ifdef SYS_fork
  expect_refused(SYS_fork);
#endif
}

TEST(Sandbox, refuses_files) {
#ifdef SYS_open
  expect_refused(SYS_open, {address_of("/etc/passwd"), O_RDONLY});
#endif
  expect_refused(SYS_openat, {static_cast<uint64_t>(AT_FDCWD), address_of("/etc/passwd"), O_RDONLY});
  expect_refused(SYS_memfd_create);
}

TEST(Sandbox, refuses_sockets_and_packets_with_descriptors) {
  expect_refused(SYS_socket, {AF_INET, SOCK_DGRAM, 0});
  expect_refused(SYS_sendmsg);
}

TEST(Sandbox, refuses_to_touch_other_processes) {
  expect_refused(SYS_ptrace, {PTRACE_ATTACH, static_cast<uint64_t>(::getpid())});
  expect_refused(SYS_process_vm_readv, {static_cast<uint64_t>(::getpid())});
  expect_refused(SYS_kill, {static_cast<uint64_t>(::getpid()), SIGTERM});
  expect_refused(SYS_tgkill, {static_cast<uint64_t>(::getpid()), static_cast<uint64_t>(::getpid()), SIGTERM});
}

TEST(Sandbox, refuses_to_change_its_limits_and_handlers) {
  expect_refused(SYS_prlimit64);
  expect_refused(SYS_rt_sigaction, {SIGSEGV});
}

TEST(Sandbox, refuses_executable_memory) {
  expect_refused(SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS});
  expect_refused(SYS_mprotect, {0, 4096, PROT_READ | PROT_EXEC});
}

TEST(Sandbox, code_cannot_be_made_writable) {
  TestCell cell;
  cell.ready();
  const auto address = reinterpret_cast<uintptr_t>(cell.code().code().address);
  const auto heard = cell.call(order(What::system, {SYS_mprotect, address, 4096, PROT_READ | PROT_WRITE}));
  ASSERT_TRUE(heard.reply) << cell.ending().text();
  EXPECT_EQ(static_cast<int64_t>(heard.number()), -EACCES);
}

TEST(Sandbox, a_hundred_gigabytes_are_refused) {
  const uint64_t size = uint64_t{100} << 30;
  EXPECT_EQ(result_of_call(SYS_mmap, {0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE}),
            -ENOMEM);
}

TEST(Sandbox, memory_below_the_limit_is_given) {
  const uint64_t size = uint64_t{1} << 20;
  EXPECT_GT(result_of_call(SYS_mmap, {0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS}), 0);
}

TEST(Sandbox, the_cell_has_no_descriptor_but_the_socket) {
  for (uint64_t descriptor = 1; descriptor < 10; ++descriptor)
    EXPECT_EQ(result_of_call(SYS_close, {descriptor}), -EBADF);
}

TEST(Sandbox, a_system_call_that_the_kernel_may_lack_is_refused_quietly) {
  EXPECT_EQ(result_of_call(435 /* clone3 */), -ENOSYS);
}

}  // namespace
}  // namespace tc::cell
