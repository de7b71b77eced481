// SPDX-License-Identifier: Apache-2.0
//
// C++: checks of its library, std::terminate(), and exceptions that nobody catches fail the call.
//
// RUN: %cases %s %t
// RUN: %build %t/at.cc --target x86_64-linux-gnu -o %t.ifunc
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/at.cc
// RUN: %build %t/terminate.cc --target x86_64-linux-gnu -o %t.ifunc
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/terminate.cc
// RUN: %build %t/optional.cc --target x86_64-linux-gnu -o %t.ifunc
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/optional.cc
// RUN: printf 'stdc++\ngcc_s\n' > %t/throws.deps
// RUN: %build %t/throws.cc --target x86_64-linux-gnu -o %t.ifunc -- -fexceptions
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/throws.cc

//--- at.cc
#include <string_view>
extern "C" void at_main(void* payload, unsigned long size, void* target) {
  const std::string_view text(static_cast<char*>(payload), size);
  *static_cast<char*>(target) = text.at(3);
}
// CHECK-NOT: __throw_out_of_range
// CHECK: movl $-3, %edi
// CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
// CHECK: .asciz "std::out_of_range at at.cc:4"

//--- terminate.cc
#include <exception>
extern "C" void terminate_main(void* payload, unsigned long size, void* target) {
  if (size > 3) std::terminate();
  *static_cast<int*>(target) = *static_cast<int*>(payload);
}
// CHECK-NOT: _ZSt9terminatev
// CHECK: movl $-2, %edi
// CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
// CHECK: .asciz "std::terminate() at terminate.cc:3"

//--- optional.cc
#include <optional>
extern "C" void optional_main(void* payload, unsigned long size, void* target) {
  std::optional<int> number;
  if (size > 3) number = *static_cast<int*>(payload);
  *static_cast<int*>(target) = number.value();
}
// Its header calls abort() where exceptions are off.
// CHECK: movl $-2, %edi
// CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
// CHECK: .asciz "abort() at optional.cc:5"

//--- throws.cc
extern "C" void throws_main(void*, unsigned long size, void* target) {
  if (size > 3) throw 41;
  *static_cast<int*>(target) = 1;
}
// CHECK-LABEL: ifunc_main:
// CHECK: __cxa_begin_catch
// CHECK: movl $-6, %edi
// CHECK: tc_fail
// CHECK: __cxa_end_catch
// CHECK: .asciz "an exception was thrown and not caught"
