// SPDX-License-Identifier: Apache-2.0
#include "random_program.h"

#include <fmt/format.h>

#include <utility>

namespace tc::toolchain {

namespace {

constexpr const char* head = R"(#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef NATIVE
static jmp_buf out;
#define abort() longjmp(out, 1)
#else
void abort(void) __attribute__((noreturn));
#endif
typedef __int128 i128;
typedef unsigned __int128 u128;
struct small { uint8_t a; int16_t b; };
struct large { uint64_t a; int32_t b; double c; uint8_t d[5]; struct small e; };
#define SHIFT(x, y) ((uint64_t)(y) & 63)
static inline uint64_t divided(uint64_t a, uint64_t b) { return b == 0 ? a : a / b; }
static inline uint64_t rest(uint64_t a, uint64_t b) { return b == 0 ? a : a % b; }
static inline int32_t divided_32(int32_t a, int32_t b) { return b == 0 || b == -1 ? a : a / b; }
static inline int64_t rest_64(int64_t a, int64_t b) { return b == 0 || b == -1 ? a : a % b; }
static inline int64_t whole(double x) { return x > -1e15 && x < 1e15 ? (int64_t)x : 77; }
/* Of NaN and of zero any: gcc 12 makes -(double)n of 0 - (double)n. */
static inline uint64_t bits(double x) { uint64_t b; memcpy(&b, &x, 8); return x != x ? 12345 : x == 0 ? 0 : b; }
static struct large made(uint64_t a, int32_t b) {
  struct large l = {a, b, (double)b * 0.5, {(uint8_t)a, 2, 3, 4, 5}, {(uint8_t)b, (int16_t)a}};
  return l;
}
static inline uint64_t mixed(struct large l, struct small s) {
  return l.a + (uint64_t)l.b + bits(l.c) + l.d[1] + l.e.a + (uint64_t)s.b * s.a;
}
)";

constexpr const char* tail = R"(
static uint64_t run(const uint64_t *in, const uint8_t *bytes, size_t size) {
  return programs[in[0] % (sizeof programs / sizeof *programs)](in, bytes, size);
}
#ifdef NATIVE
int run_native(void *payload, size_t size, void *answer) {
  if (setjmp(out)) return 1;
  *(uint64_t *)answer = run(payload, (const uint8_t *)payload + 64, size - 64);
  return 0;
}
#else
void random_main(void *payload, size_t size, void *answer) {
  *(uint64_t *)answer = run(payload, (const uint8_t *)payload + 64, size - 64);
}
#endif
)";

}  // namespace

const char* RandomPrograms::integer_type() {
  return one_of(
      {"uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "u128", "i128"});
}

const char* RandomPrograms::any_type() {
  return one_in(4) ? one_of({"float", "double", "long double"}) : integer_type();
}

std::string RandomPrograms::convert(const std::string& to, const std::string& from, const std::string& value) {
  if (to == from) return value;
  if (is_float(from) && !is_float(to)) return fmt::format("({})whole((double){})", to, value);
  return fmt::format("({}){}", to, value);
}

std::string RandomPrograms::leaf(const std::string& type) {
  switch (below(6)) {
    case 0:
      return fmt::format("({}){}", type,
                         is_float(type) ? fmt::format("{}.{}", below(100), below(1000))
                                        : fmt::format("{}u", one_in(2) ? below(20) : random_() >> 32));
    case 1: return convert(type, "uint64_t", fmt::format("in[{}]", below(8)));
    case 2: return convert(type, "uint8_t", fmt::format("(size ? bytes[{} % size] : 9)", below(300)));
    case 3: return convert(type, "uint32_t", fmt::format("table{}[{} & 15]", number_, below(16)));
    default: {
      const auto& variable = variables_[below(variables_.size())];
      return convert(type, variable.type, variable.name);
    }
  }
}

// Signed numbers are computed without their signs, which never overflows.
std::string RandomPrograms::operation(const std::string& type, unsigned depth) {
  const auto left = expression(type, depth - 1), right = expression(type, depth - 1);
  if (is_float(type)) return fmt::format("({} {} {})", left, one_of({"+", "-", "*"}), right);
  const bool wide = type == "u128" || type == "i128";
  const char* const without_sign = wide ? "u128" : "uint64_t";
  return fmt::format("({})(({}){} {} ({}){})", type, without_sign, left, one_of({"+", "-", "*", "&", "|", "^"}),
                     without_sign, right);
}

std::string RandomPrograms::special(unsigned depth) {
  const auto a = integer(depth - 1), b = integer(depth - 1);
  switch (below(16)) {
    case 0: return fmt::format("divided({}, {})", a, b);
    case 1: return fmt::format("rest({}, {})", a, b);
    case 2: return fmt::format("(uint64_t)divided_32((int32_t){}, (int32_t){})", a, b);
    case 3: return fmt::format("(uint64_t)rest_64((int64_t){}, (int64_t){})", a, b);
    case 4: return fmt::format("({} << SHIFT(0, {}))", a, b);
    case 5: return fmt::format("(uint64_t)((int64_t){} >> SHIFT(0, {}))", a, b);
    case 6: return fmt::format("(uint64_t)(((u128){} * {}) >> 64)", a, b);
    case 7: return fmt::format("(uint64_t)((((u128){0} << 64) | {1}) / ({1} | 1))", a, b);
    case 8:
      return fmt::format("(uint64_t)__builtin_{}({} | 1)", one_of({"popcountll", "clzll", "ctzll", "parityll"}), a);
    case 9: return fmt::format("(uint64_t)__builtin_bswap{}(({}){})", one_in(2) ? "32" : "64", "uint64_t", a);
    case 10: return fmt::format("bits({})", expression("double", depth - 1));
    case 11: return fmt::format("mixed(made({}, (int32_t){}), (struct small){{(uint8_t){}, (int16_t)in[3]}})", a, b, b);
    case 12: return fmt::format("({} {} {})", a, one_of({"<", "<=", "==", ">", "!="}), b);
    case 13:
      return fmt::format("(uint64_t)({} {} {})", expression("double", depth - 1), one_of({"<", "<=", ">"}),
                         expression("float", depth - 1));
    case 14: return fmt::format("state{}[{} & 7]", number_, a);
    default: return fmt::format("({} ? {} : {})", a, b, integer(depth - 1));
  }
}

std::string RandomPrograms::expression(const std::string& type, unsigned depth) {
  if (depth == 0 || one_in(5)) return leaf(type);
  if (one_in(3)) {
    const std::string other = any_type();
    return convert(type, other, fmt::format("({})", expression(other, depth - 1)));
  }
  if (one_in(3)) return convert(type, "uint64_t", "(uint64_t)" + special(depth));
  return operation(type, depth);
}

void RandomPrograms::assignment() {
  std::vector<Variable> writable;
  for (const auto& variable : variables_)
    if (variable.writable) writable.push_back(variable);
  if (may_call_ && !helpers_.empty() && one_in(4)) return call();
  if (writable.empty() || one_in(4)) {
    line(fmt::format("state{}[{} & 7] {}= {};", number_, integer(1), one_of({"", "+", "^"}), integer(2)));
    return;
  }
  const auto& to = writable[below(writable.size())];
  line(fmt::format("{} = {};", to.name, expression(to.type, 3)));
}

// A statement of its own, because compilers are free in the order in which they evaluate what changes state.
void RandomPrograms::call() {
  const auto a = integer(2), b = integer(2);
  const bool one_of_them = helpers_.size() == 1 || one_in(2);
  const auto callee = one_of_them ? helpers_[below(helpers_.size())]
                                  : fmt::format("choice{}[{} % {}]", number_, integer(1), helpers_.size());
  line(fmt::format("sum += {}({}, {});", callee, a, b));
}

void RandomPrograms::loop(unsigned depth) {
  const auto i = fresh("i");
  const bool over_bytes = one_in(4);
  line(over_bytes ? fmt::format("for (size_t {0} = 0; {0} < size; ++{0}) {{", i)
                  : fmt::format("for (uint32_t {0} = 0; {0} < {1}; ++{0}) {{", i, 1 + below(loops_ == 0 ? 40 : 5)));
  ++loops_;
  const auto known = variables_.size();
  variables_.push_back({i, over_bytes ? "size_t" : "uint32_t", false});
  ++indent_;
  if (over_bytes)
    line(fmt::format("local[{0} & 31] {1}= (uint32_t)bytes[{0}] * {2}u + (uint32_t){0};", i, one_of({"", "+", "^"}),
                     below(99)));
  else if (one_in(2))
    line(fmt::format("local[{0} & 31] = local[({0} + {1}) & 31] {2} {3}u;", i, below(31), one_of({"+", "*", "^", ">>"}),
                     1 + below(9)));
  --indent_;
  const bool could_call = std::exchange(may_call_, may_call_ && loops_ < 2);
  block(depth - 1, 2);
  may_call_ = could_call;
  variables_.resize(known);
  --loops_;
  line("}");
}

void RandomPrograms::choice(unsigned depth) {
  const auto cases = 2 + below(9);
  line(fmt::format("switch ({} % {}) {{", integer(2), cases + 1));
  for (uint64_t i = 0; i < cases; ++i) {
    line(fmt::format("case {}: {{", i));
    block(depth - 1, 1);
    line(one_in(4) ? "} /* fall through */" : "} break;");
  }
  line("default: break;");
  line("}");
}

void RandomPrograms::statement(unsigned depth) {
  switch (depth == 0 ? 0 : below(10)) {
    case 0:
    case 1:
    case 2: return assignment();
    case 3:
    case 4:
      if (loops_ < 2) return loop(depth);
      return assignment();
    case 5: return choice(depth);
    case 6: line(fmt::format("if ({} % {} == {}) abort();", integer(2), 64 + below(500), below(64))); return;
    case 7:
      line(
          fmt::format("{{ uint32_t copy[32]; memcpy(copy, local, sizeof copy); copy[{} & 31] ^= 5; "
                      "memcpy(local, copy, {}); }}",
                      integer(1), 4 * below(33)));
      return;
    case 8:
      line(fmt::format(
          "{{ size_t n = 1 + {0} % 24; uint64_t *v = __builtin_alloca(8 * n); for (size_t k = 0; k < n; ++k) "
          "v[k] = {1} + k; sum += v[n / 2]; }}",
          integer(1), integer(1)));
      return;
    default:
      line(fmt::format("if ({}) {{", integer(2)));
      block(depth - 1, 2);
      if (one_in(2)) {
        line("} else {");
        block(depth - 1, 2);
      }
      line("}");
  }
}

void RandomPrograms::block(unsigned depth, unsigned statements) {
  ++indent_;
  const auto known = variables_.size();
  if (one_in(2)) {
    const std::string type = any_type();
    const auto name = fresh("v");
    line(fmt::format("{} {} = {};", type, name, expression(type, 2)));
    variables_.push_back({name, type, true});
  }
  for (uint64_t i = 0, count = 1 + below(statements); i < count; ++i) statement(depth);
  variables_.resize(known);
  --indent_;
}

void RandomPrograms::tables(const std::string& name) {
  std::string values;
  for (int i = 0; i < 16; ++i) values += fmt::format("{}u, ", random_() >> 32);
  text_ += fmt::format("static const uint32_t table{}[16] = {{{}}};\n", name, values);
  text_ +=
      fmt::format("static uint64_t state{}[8]{};\n", name, one_in(2) ? fmt::format(" = {{{}u, 2}}", below(1000)) : "");
}

void RandomPrograms::helper(unsigned number) {
  const auto name = fmt::format("helper{}_{}", number_, number);
  const bool recursive = one_in(4);
  text_ += fmt::format("{}static uint64_t {}(uint64_t a, uint64_t b) {{\n",
                       one_in(2) ? "__attribute__((noinline)) " : "", name);
  text_ +=
      "  static const uint64_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n  const uint8_t *const bytes = (const uint8_t "
      "*)table";
  text_ += fmt::format("{};\n  const size_t size = 64;\n  uint32_t local[32] = {{0}};\n  uint64_t sum = 0;\n", number_);
  if (recursive) text_ += fmt::format("  if (a % 7 > 0 && b > 3) sum += {}(a / 7, b / 2);\n", name);
  if (one_in(3)) text_ += "  static uint64_t calls = 3;\n  sum += ++calls;\n";
  variables_ = {{"a", "uint64_t", true}, {"b", "uint64_t", true}, {"sum", "uint64_t", true}};
  may_call_ = false;
  block(2, 3);
  text_ += fmt::format("  (void)in, (void)bytes, (void)size;\n  return sum + {} + local[a & 31];\n}}\n", integer(2));
  may_call_ = true;
  helpers_.push_back(name);
}

void RandomPrograms::program(unsigned number) {
  number_ = number;
  helpers_.clear();
  tables(std::to_string(number));
  for (uint64_t i = 0, count = below(4); i < count; ++i) helper(static_cast<unsigned>(i));
  if (helpers_.size() > 1) {
    std::string names;
    for (const auto& name : helpers_) names += name + ", ";
    text_ += fmt::format("static uint64_t (*{0}choice{1}[])(uint64_t, uint64_t) = {{{2}}};\n",
                         one_in(2) ? "volatile " : "const ", number, names);
  }
  text_ += fmt::format("static uint64_t program{}(const uint64_t *in, const uint8_t *bytes, size_t size) {{\n", number);
  text_ += "  uint32_t local[32] = {1, 2, 3};\n  uint64_t sum = 0;\n";
  variables_ = {{"sum", "uint64_t", true}};
  for (int i = 0; i < 3; ++i) {
    const std::string type = any_type();
    const auto name = fresh("v");
    text_ += fmt::format("  {} {} = {};\n", type, name, leaf(type));
    variables_.push_back({name, type, true});
  }
  block(3, 6);
  for (const auto& variable : variables_)
    text_ +=
        fmt::format("  sum = sum * 31 + {};\n", is_float(variable.type) ? fmt::format("bits((double){})", variable.name)
                                                                        : "(uint64_t)" + variable.name);
  text_ +=
      fmt::format("  for (int k = 0; k < 32; ++k) sum = sum * 7 + local[k];\n  return sum + state{}[1];\n}}\n", number);
}

std::string RandomPrograms::file(unsigned count) {
  text_ = head;
  std::string names;
  for (unsigned i = 0; i < count; ++i) {
    program(i);
    names += fmt::format("program{}, ", i);
  }
  text_ +=
      fmt::format("static uint64_t (*const programs[])(const uint64_t *, const uint8_t *, size_t) = {{{}}};\n", names);
  return text_ + tail;
}

}  // namespace tc::toolchain
