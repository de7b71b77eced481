// SPDX-License-Identifier: Apache-2.0
#include "target/cpu.h"

#if defined(__aarch64__) || defined(__riscv)
#include <sys/auxv.h>
#endif

namespace tc::target {

#if defined(__x86_64__)

Cpu host_cpu() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return {"x86-64-v4", ""};
  if (__builtin_cpu_supports("x86-64-v3")) return {"x86-64-v3", ""};
  if (__builtin_cpu_supports("x86-64-v2")) return {"x86-64-v2", ""};
  return {"x86-64", ""};
}

#elif defined(__aarch64__)

namespace {

// The kernel's bits (AT_HWCAP, AT_HWCAP2), by number, so that old headers do.
struct Feature {
  unsigned bit;
  const char* name;
};
constexpr Feature first[] = {{3, "+aes"},  {6, "+sha2"},  {7, "+crc"},      {8, "+lse"}, {10, "+fullfp16"},
                             {12, "+rdm"}, {15, "+rcpc"}, {20, "+dotprod"}, {22, "+sve"}};
constexpr Feature second[] = {{1, "+sve2"}, {13, "+i8mm"}, {14, "+bf16"}};

template <size_t N>
void add(std::string& features, const Feature (&known)[N], unsigned long has) {
  for (const auto& one : known)
    if ((has >> one.bit & 1) != 0) features += (features.empty() ? "" : ",") + std::string(one.name);
}

}  // namespace

Cpu host_cpu() {
  Cpu cpu{"generic", ""};
  add(cpu.features, first, getauxval(AT_HWCAP));
  add(cpu.features, second, getauxval(AT_HWCAP2));
  return cpu;
}

#else

Cpu host_cpu() {
  const bool has_vectors = (getauxval(AT_HWCAP) >> ('v' - 'a') & 1) != 0;
  return {"generic-rv64", has_vectors ? "+v" : ""};
}

#endif

}  // namespace tc::target
