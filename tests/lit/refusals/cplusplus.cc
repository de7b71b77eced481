// SPDX-License-Identifier: Apache-2.0
//
// What cannot travel from C++, where it is more than C's: symbols as their authors write them.
//
// RUN: rm -rf %t && %cases %s %t
// RUN: %refuses %t/object.cc | %FileCheck %t/object.cc
// RUN: %refuses %t/local.cc | %FileCheck %t/local.cc
// RUN: %refuses %t/stream.cc | %FileCheck %t/stream.cc
// RUN: %refuses %t/vector.cc | %FileCheck %t/vector.cc
// RUN: %refuses %t/method.cc | %FileCheck %t/method.cc
// RUN: %refuses %t/throwing.cc -- -fexceptions | %FileCheck %t/throwing.cc
// RUN: %refuses %t/throwing.cc | %FileCheck %t/throwing.cc --check-prefix=OFF
//
// RUN: echo stdc++ > %t/vector.deps
// RUN: %build %t/vector.cc -o %t.ifunc

//--- object.cc
struct Counter {
  // CHECK: object.cc:[[#@LINE+1]]: a static constructor would have to run{{.*}}initialise in object_main, make it constexpr
  Counter() : value(next) {}
  int value;
  static volatile int next;
};
volatile int Counter::next = 3;
static Counter counter;
extern "C" void object_main(void*, unsigned long, void* target) { *static_cast<int*>(target) = counter.value++; }

//--- local.cc
namespace words {
thread_local int seen;
}
extern "C" void local_main(void*, unsigned long, void* target) {
  // CHECK: local.cc:[[#@LINE+1]]: 'words::seen' is thread-local
  *static_cast<int*>(target) = ++words::seen;
}

//--- stream.cc
#include <iostream>
// CHECK: stream.cc: a static constructor would have to run
extern "C" void stream_main(void*, unsigned long size, void*) { std::cout << size; }

//--- vector.cc
#include <vector>
extern "C" void vector_main(void*, unsigned long size, void* target) {
  // CHECK: vector.cc:{{[0-9]+}}: 'operator {{new|delete}}{{.*}}' (_Z{{.*}}) is called {{.*}}declare its library stdc++ in vector.deps
  std::vector<int> numbers(size);
  *static_cast<int**>(target) = numbers.data();
}

//--- method.cc
namespace bank {
struct Account {
  int balance(long day) const;
};
}  // namespace bank
extern "C" void method_main(void* payload, unsigned long, void* target) {
  // CHECK: method.cc:[[#@LINE+1]]: 'bank::Account::balance(long) const' (_ZNK4bank7Account7balanceEl) is called
  *static_cast<int*>(target) = static_cast<bank::Account*>(payload)->balance(3);
}

//--- throwing.cc
extern "C" void throwing_main(void*, unsigned long size, void* target) {
  try {
    if (size > 3) throw 1;
  } catch (int) {
    *static_cast<int*>(target) = 1;
  }
  // CHECK: throwing.cc:{{[0-9]+}}: C++ exceptions and type information need '{{.*}} of the C++ library; {{.*}}stdc++ and gcc_s in throwing.deps
  // OFF: cannot use 'throw' with exceptions disabled
}
