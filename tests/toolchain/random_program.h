// SPDX-License-Identifier: Apache-2.0
//
// Small C programs from a seed, which mean the same to every compiler: no undefined behaviour, no order that is not said.
// One file holds many, each a function; the entry calls the one whose number the payload begins with. Between calls they
// keep static variables, and some give up by abort().
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tc::toolchain {

class RandomPrograms {
 public:
  explicit RandomPrograms(uint64_t seed) : random_(seed) {}

  // A file of `count` programs, as ifunc "random". Compiled with -DNATIVE it has run_native() in the place of the entry, which
  // says by its result whether the program gave up.
  std::string file(unsigned count);

 private:
  struct Variable {
    std::string name, type;
    bool writable;
  };
  uint64_t below(uint64_t limit) { return random_() % limit; }
  bool one_in(unsigned n) { return below(n) == 0; }
  const char* one_of(std::initializer_list<const char*> choices) { return choices.begin()[below(choices.size())]; }
  const char* any_type();
  const char* integer_type();
  static bool is_float(const std::string& type) { return type == "float" || type == "double" || type == "long double"; }

  std::string expression(const std::string& type, unsigned depth);
  std::string integer(unsigned depth) { return expression("uint64_t", depth); }
  std::string leaf(const std::string& type);
  std::string operation(const std::string& type, unsigned depth);
  std::string special(unsigned depth);
  std::string convert(const std::string& to, const std::string& from, const std::string& value);

  void line(const std::string& text) { text_ += std::string(2 * indent_, ' ') + text + "\n"; }
  void block(unsigned depth, unsigned statements);
  void statement(unsigned depth);
  void assignment();
  void call();
  void loop(unsigned depth);
  void choice(unsigned depth);
  void tables(const std::string& name);
  void helper(unsigned number);
  void program(unsigned number);
  std::string fresh(const char* what) { return std::string(what) + "_" + std::to_string(++names_); }

  std::mt19937_64 random_;
  std::string text_;
  std::vector<Variable> variables_;
  std::vector<std::string> helpers_;  // functions of the program: uint64_t (uint64_t, uint64_t)
  unsigned indent_ = 0, loops_ = 0, names_ = 0, number_ = 0;
  bool may_call_ = true;
};

}  // namespace tc::toolchain
