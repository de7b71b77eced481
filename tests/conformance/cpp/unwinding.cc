// SPDX-License-Identifier: Apache-2.0
// Throws and catches in every way that C++ knows, through its own functions and through those of libraries.
#include <threechains/ifunc.h>

#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <typeinfo>

namespace {

std::uint64_t calls, cleaned;

struct Thrown {
  std::uint64_t value;
};
struct Derived : Thrown {
  std::uint64_t more;
};
struct Cleaned {
  std::uint64_t by;
  ~Cleaned() { cleaned += by; }
};
struct Shape {
  virtual int corners() const { return -1; }
};
struct Circle : Shape {
  int corners() const override { return 0; }
};
struct Square : Shape {
  int corners() const override { return 4; }
};
const Circle circle;
const Square square;
const Shape* kept = &circle;

[[gnu::noinline]] std::uint64_t may_throw(std::uint64_t n) {
  if (n % 3 == 0) throw Thrown{n};
  if (n % 3 == 1) throw Derived{{n}, n * 2};
  return n;
}

[[gnu::noinline]] std::uint64_t through_cleanup(std::uint64_t n) {
  const Cleaned one{1};
  const std::uint64_t value = may_throw(n);
  const Cleaned ten{10};
  return value + may_throw(n + 1);
}

[[gnu::noinline]] std::uint64_t by_type(std::uint64_t n) {
  try {
    return through_cleanup(n);
  } catch (const Derived& thrown) {
    return 1000 + thrown.more;
  } catch (const Thrown& thrown) {
    return 2000 + thrown.value;
  }
}

[[gnu::noinline]] std::uint64_t rethrown(std::uint64_t n) {
  try {
    try {
      return may_throw(n);
    } catch (const Derived&) {
      const Cleaned one{100};
      throw;
    }
  } catch (...) {
    return 3000;
  }
}

[[gnu::noinline]] std::uint64_t of_the_library(std::uint64_t n) {
  try {
    return static_cast<std::uint64_t>(std::stoi(n % 2 == 0 ? "many" : "17"));
  } catch (const std::logic_error& error) {
    return 4000 + std::string(error.what()).size();
  }
}

int throwing(const void* a, const void* b) {
  if (*static_cast<const int*>(a) == 2 && *static_cast<const int*>(b) == 1) throw Thrown{5};
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

[[gnu::noinline]] std::uint64_t through_the_c_library(std::uint64_t n) {
  int numbers[] = {3, n % 2 == 0 ? 2 : 5, 1};
  try {
    const int one = 1, two = 2;
    const Cleaned thousand{1000};
    (void)std::bsearch(n % 2 == 0 ? &two : &one, numbers + 2, 1, sizeof numbers[0], throwing);
    return 1;
  } catch (const Thrown& thrown) {
    return 5000 + thrown.value;
  }
}

[[gnu::noinline]] std::uint64_t stored(std::uint64_t n) {
  static auto* const kept = new std::exception_ptr;
  try {
    if (*kept && n % 2 == 0) std::rethrow_exception(*kept);
    throw Derived{{n}, n};
  } catch (const Derived& thrown) {
    *kept = std::current_exception();
    return 6000 + thrown.more;
  }
}

[[gnu::noinline]] std::uint64_t types(std::uint64_t n) {
  const bool is_circle = typeid(*kept) == typeid(Circle), is_cast = dynamic_cast<const Square*>(kept) != nullptr;
  const bool is_same = kept == &circle;
  const int corners = kept->corners();
  kept = n % 2 == 0 ? static_cast<const Shape*>(&circle) : &square;
  return (is_circle ? 100 : 0) + (is_cast ? 10 : 0) + (is_same ? 1 : 0) + static_cast<std::uint64_t>(corners) * 1000;
}

}  // namespace

extern "C" void unwinding_main(void* payload, size_t, void*) {
  const std::uint64_t n = *static_cast<const std::uint64_t*>(payload);
  const std::uint64_t answer[] = {++calls,   by_type(n), rethrown(n), of_the_library(n), through_the_c_library(n),
                                  stored(n), types(n),   cleaned};
  tc_reply(answer, sizeof answer);
}
