/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of every program that is built with a sanitizer (cmake/options.cmake), so that it behaves the same whoever
 * starts it: ctest, a test's child process, the build itself, or a person. */
#define DEFAULTS __attribute__((visibility("default"), used)) const char *

/* Containers that LLVM's uninstrumented library has touched look overflown; libthreechains is in some programs twice,
 * once as modules and once as the shared library. */
DEFAULTS __asan_default_options(void) { return "detect_container_overflow=0:detect_odr_violation=0"; }

DEFAULTS __ubsan_default_options(void) { return "print_stacktrace=1"; }

/* What other libraries keep until the process ends. */
DEFAULTS __lsan_default_suppressions(void) {
  return "leak:libucs.so\n" /* UCX: its configuration and loaded modules */
         "leak:libuct.so\n"
         "leak:libucm.so\n"
         "leak:libucp.so\n"
         "leak:libLLVM\n"; /* LLVM: the registry of command-line options */
}
DEFAULTS __lsan_default_options(void) { return "print_suppressions=0"; }

DEFAULTS __tsan_default_options(void) { return "halt_on_error=1:second_deadlock_stack=1"; }
/* Libraries that were built without the thread sanitizer, which cannot see their atomics. */
DEFAULTS __tsan_default_suppressions(void) {
  return "called_from_lib:libucp.so\n"
         "called_from_lib:libuct.so\n"
         "called_from_lib:libucs.so\n"
         "called_from_lib:libucm.so\n"
         "called_from_lib:libLLVM-22.so\n"
         /* Nobody but UCX has spin locks, which it takes where the sanitizer does not see it. */
         "mutex:pthread_spin_unlock\n"
         /* libucs unlocks a mutex of its own when it is unloaded; that it locked it was not seen, as it is not
          * instrumented. */
         "mutex:_dl_call_fini\n";
}
