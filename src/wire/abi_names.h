// SPDX-License-Identifier: Apache-2.0
//
// The names that the toolchain and a node agree on: entry points of a slice, functions that injected code may call, and
// functions that compilers call by themselves. tests/structure/test_abi_names.py compares them with the header for
// authors and with the toolchains of other languages.
//
// Threads: any; these are constants.
#pragma once

#include <string_view>

namespace tc::abi_names {

// ---- Entry points, as slices define them: the same for every ifunc, so a node need not know the ifunc's name.
inline constexpr const char* main = "ifunc_main";
inline constexpr const char* payload_get_max_size = "payload_get_max_size";
inline constexpr const char* payload_init = "payload_init";
inline constexpr const char* payload_bound = "payload_bound";

// ---- The same as authors write them: behind the ifunc's name, as in NAME_main.
inline constexpr const char* main_suffix = "_main";
inline constexpr const char* payload_get_max_size_suffix = "_payload_get_max_size";
inline constexpr const char* payload_init_suffix = "_payload_init";
inline constexpr const char* payload_bound_suffix = "_payload_bound";

// The symbol that TC_PAYLOAD_ALIGN() defines.
inline constexpr const char* payload_alignment = "tc_payload_alignment";
// The symbol that TC_CONCURRENT defines, and the toolchains of other languages: a constant of 32 bits, which is 1.
inline constexpr const char* concurrent = "tc_concurrent";
// Prefix of the names that the toolchain gives to writable variables, with a number behind it. A variable has the same
// name in each slice.
inline constexpr const char* variable_prefix = "tc_variable_";
// Prefix of tc_algebraic_add_f64 and the like. The toolchain turns these calls into instructions, so no node sees them.
inline constexpr const char* algebraic_prefix = "tc_algebraic_";

}  // namespace tc::abi_names

// Each list is a macro, because target/executor.cc also needs the address behind each name.

// The functions of <threechains/ifunc.h>.
#define TC_ABI_FUNCTIONS(X) \
  X(tc_id) X(tc_count) X(tc_data) X(tc_reply) X(tc_forward) X(tc_forward_as) X(tc_inject) X(tc_fail) X(tc_log)

// Functions that the toolchain inserts calls to, and authors do not call: see tc_leaving() in target/executor.h.
#define TC_ABI_OF_TOOLCHAIN(X) X(tc_leaving)

// Functions that compilers call by themselves: of the C library, of the compiler's runtime library, and complex
// arithmetic, which gcc knows by its types.
#define TC_RUNTIME_OF_C(X) X(memcpy) X(memmove) X(memset) X(memcmp) X(bcmp) X(strlen)
// clang-format off
#define TC_RUNTIME_COMMON(X) \
  X(__divti3) X(__modti3) X(__udivti3) X(__umodti3) X(__udivmodti4) X(__multi3) X(__ashlti3) X(__ashrti3) \
  X(__lshrti3) X(__negti2) X(__clzti2) X(__ctzti2) X(__ffsti2) X(__popcountdi2) X(__popcountti2) X(__paritydi2) \
  X(__parityti2) X(__bswapsi2) X(__bswapdi2) X(__cmpti2) X(__ucmpti2) X(__powisf2) X(__powidf2) X(__fixsfti) \
  X(__fixdfti) X(__fixunssfti) X(__fixunsdfti) X(__floattisf) X(__floattidf) X(__floatuntisf) X(__floatuntidf) \
  TC_RUNTIME_QUAD(X)
// Floating-point numbers of 128 bits: long double, and __float128 on x86-64.
#define TC_RUNTIME_QUAD(X) \
  X(__addtf3) X(__subtf3) X(__multf3) X(__divtf3) X(__negtf2) X(__powitf2) X(__eqtf2) X(__netf2) X(__lttf2) \
  X(__letf2) X(__gttf2) X(__getf2) X(__unordtf2) X(__extendsftf2) X(__extenddftf2) X(__trunctfsf2) X(__trunctfdf2) \
  X(__fixtfsi) X(__fixtfdi) X(__fixtfti) X(__fixunstfsi) X(__fixunstfdi) X(__fixunstfti) X(__floatsitf) \
  X(__floatditf) X(__floattitf) X(__floatunsitf) X(__floatunditf) X(__floatuntitf)
// For x86-64 alone: functions for its long double and its floating-point numbers of 16 bits.
#define TC_RUNTIME_OF_X86_64(X) \
  X(__powixf2) X(__fixxfti) X(__fixunsxfti) X(__floattixf) X(__floatuntixf) X(__extendxftf2) X(__trunctfxf2) \
  X(__extendhfsf2) X(__extendhfdf2) X(__extendhfxf2) X(__extendhftf2) X(__truncsfhf2) X(__truncdfhf2) \
  X(__truncxfhf2) X(__trunctfhf2) X(__fixhfti) X(__fixunshfti) X(__floattihf) X(__floatuntihf)
// clang-format on
#define TC_RUNTIME_COMPLEX(X) X(__muldc3) X(__mulsc3) X(__divdc3) X(__divsc3)
// Outlined atomics, for aarch64 alone.
#define TC_ATOMIC_ORDERS(X, name) X(name##_relax) X(name##_acq) X(name##_rel) X(name##_acq_rel)
#define TC_ATOMIC_SIZES(X, name) \
  TC_ATOMIC_ORDERS(X, name##1) TC_ATOMIC_ORDERS(X, name##2) TC_ATOMIC_ORDERS(X, name##4) TC_ATOMIC_ORDERS(X, name##8)
#define TC_RUNTIME_OF_AARCH64(X)       \
  TC_ATOMIC_SIZES(X, __aarch64_cas)    \
  TC_ATOMIC_ORDERS(X, __aarch64_cas16) \
  TC_ATOMIC_SIZES(X, __aarch64_swp)    \
  TC_ATOMIC_SIZES(X, __aarch64_ldadd)  \
  TC_ATOMIC_SIZES(X, __aarch64_ldclr) TC_ATOMIC_SIZES(X, __aarch64_ldeor) TC_ATOMIC_SIZES(X, __aarch64_ldset)

namespace tc::abi_names {

#define TC_NAME(name) #name,
inline constexpr std::string_view functions[] = {TC_ABI_FUNCTIONS(TC_NAME) TC_ABI_OF_TOOLCHAIN(TC_NAME)};
inline constexpr std::string_view compiler_runtime[] = {TC_RUNTIME_OF_C(TC_NAME) TC_RUNTIME_COMMON(
    TC_NAME) TC_RUNTIME_COMPLEX(TC_NAME) TC_RUNTIME_OF_X86_64(TC_NAME) TC_RUNTIME_OF_AARCH64(TC_NAME)};
#undef TC_NAME

}  // namespace tc::abi_names
