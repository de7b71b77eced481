// SPDX-License-Identifier: Apache-2.0
// What C++ can do and few ifuncs do; each word of the answer is one of them.
#include <threechains/ifunc.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace {

struct Base {
  std::uint64_t number = 5;
  virtual std::uint64_t value() const { return number; }
  virtual ~Base() = default;
};
struct Left : virtual Base {
  std::uint64_t value() const override { return number * 2; }
};
struct Right : virtual Base {
  std::uint64_t right = 7;
};
struct Both final : Left, Right {
  std::uint64_t value() const override { return Left::value() + right; }
};

template <class... Numbers>
constexpr std::uint64_t sum_of_squares(Numbers... numbers) {
  return ((static_cast<std::uint64_t>(numbers) * static_cast<std::uint64_t>(numbers)) + ... + 0);
}

template <unsigned N>
struct Fibonacci : std::integral_constant<std::uint64_t, Fibonacci<N - 1>::value + Fibonacci<N - 2>::value> {};
template <>
struct Fibonacci<0> : std::integral_constant<std::uint64_t, 0> {};
template <>
struct Fibonacci<1> : std::integral_constant<std::uint64_t, 1> {};

struct Counted {
  explicit Counted(std::uint64_t& count) : count(count) { ++count; }
  ~Counted() { count += 100; }
  std::uint64_t& count;
};

std::uint64_t first_of(std::uint64_t n) { return n + 1; }

}  // namespace

extern "C" void hard_main(void* payload, size_t, void*) {
  const auto* const n = static_cast<const std::uint64_t*>(payload);
  static std::uint64_t calls;
  static const std::uint64_t first = first_of(n[0]);
  std::array<std::uint64_t, 12> answer{};
  answer[0] = ++calls;
  answer[1] = first;
  const auto both = std::make_unique<Both>();
  const Base& base = *both;
  answer[2] = base.value();
  std::map<std::string, std::uint64_t> words;
  for (const char* word : {"one", "two", "a word that is too long to lie inside of a string", "two"}) ++words[word];
  answer[3] = words["two"] * 10 + words.size();
  std::vector<std::uint64_t> numbers(n[1] % 50 + 3);
  std::iota(numbers.begin(), numbers.end(), n[0]);
  std::sort(numbers.begin(), numbers.end(), [](auto a, auto b) { return a % 7 != b % 7 ? a % 7 < b % 7 : a > b; });
  answer[4] = numbers.front() * 1000 + numbers.back();
  answer[5] = sum_of_squares(n[0], 3, 4);
  answer[6] = Fibonacci<40>::value;
  const std::function<std::uint64_t(std::uint64_t)> step = [&](std::uint64_t i) {
    return i == 0 ? n[0] : step(i - 1) + i;
  };
  answer[7] = step(n[1] % 20);
  {
    const Counted one(answer[8]);
    const auto two = std::make_shared<Counted>(answer[8]);
    const auto three = two;
  }
  const auto member = &Base::value;
  answer[9] = (base.*member)();
  std::string text = "ifunc";
  text.append(n[1] % 30 + 1, 'x').insert(0, "an ");
  answer[10] = text.size() * 100 + text.rfind('c');
  answer[11] = std::accumulate(text.begin(), text.end(), std::uint64_t{0});
  tc_reply(answer.data(), sizeof answer);
}
