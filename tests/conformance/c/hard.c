// SPDX-License-Identifier: Apache-2.0
// What C can do and few ifuncs do; each word of the answer is one of them.
#include <stdarg.h>
#include <threechains/ifunc.h>

struct numbers {
  uint64_t a, b;
};
struct pair {
  double x, y;
};
struct wide {
  uint64_t words[7];
};
struct bits {
  unsigned low : 3;
  int middle : 17;
  uint64_t high : 40;
};

__attribute__((weak)) int may_be_replaced(void) { return 2; }

static uint64_t calls;
static char room[30 << 20];  // in no file

__attribute__((noinline)) static long double total(int count, ...) {
  va_list list;
  va_start(list, count);
  long double sum = 0;
  for (int i = 0; i < count; ++i) sum += i % 2 ? va_arg(list, long double) : (long double)va_arg(list, int);
  va_end(list);
  return sum;
}

// 0 ends, 1 adds the next byte, 2 doubles, 3 jumps back by the next byte while the value is below 1000.
static uint64_t interpreted(const uint8_t *program) {
  static const void *const steps[] = {&&end, &&add, &&twice, &&back};
  uint64_t value = 1;
  goto *steps[*program++];
add:
  value += *program++;
  goto *steps[*program++];
twice:
  value *= 2;
  goto *steps[*program++];
back:
  program += value < 1000 ? -(int)*program : 1;
  goto *steps[*program++];
end:
  return value;
}

__attribute__((noinline)) static struct pair turned(struct pair by, double scale) {
  return (struct pair){-by.y * scale, by.x * scale};
}

__attribute__((noinline)) static struct wide spread(struct wide from, int n) {
  for (int i = 0; i < 7; ++i) from.words[i] = from.words[i] * (uint64_t)n + (uint64_t)i;
  return from;
}

__attribute__((noinline)) static uint64_t deep(uint64_t n) {
  volatile uint64_t *const large = __builtin_alloca(1 << 20);
  large[0] = n;
  large[(1 << 17) - 1] = 3;
  return large[0] + large[(1 << 17) - 1];
}

static uint64_t (*volatile called)(uint64_t) = deep;

void hard_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const struct numbers n = *(const struct numbers *)payload;
  uint64_t answer[16] = {0};
  answer[0] = ++calls;
  room[(n.a * 4096) % sizeof room] += 1;
  answer[1] = (uint64_t)room[(n.a * 4096) % sizeof room];
  answer[2] = (uint64_t)(total(4, 3, 2.5L * n.a, 5, 0.5L) * 4);
  static const uint8_t program[] = {1, 4, 2, 3, 2, 1, 1, 0};
  answer[3] = interpreted(program);
  const unsigned __int128 product = (unsigned __int128)n.a * n.b * 1000000007u;
  answer[4] = (uint64_t)(product >> 64);
  answer[5] = (uint64_t)(product / (n.b | 1) % 1000003);
  _Complex double z = (double)n.a + 2.0i;
  z = z * z * (1.0 + 1.0i) / 2.0;
  answer[6] = (uint64_t)(int64_t)__real__ z;
  answer[7] = (uint64_t)(int64_t)__imag__ z;
  const struct pair at = turned((struct pair){(double)n.a, 3}, 2);
  answer[8] = (uint64_t)(at.y * 10 + at.x);
  struct wide wide = {{n.a, n.b, 1, 2, 3, 4, 5}};
  wide = spread(wide, 3);
  answer[9] = wide.words[0] + wide.words[1] * 2 + wide.words[6];
  answer[10] = called(n.a);
  answer[11] = (uint64_t)may_be_replaced();
  struct bits bits = {7, -5, n.b};
  bits.middle -= (int)(n.a % 100);
  bits.low += 2;
  answer[12] = (uint64_t)bits.low * 1000000 + (uint64_t)(bits.middle + 1000) + bits.high;
  static _Atomic uint64_t shared = 5;
  shared += n.a;
  answer[13] = shared;
  shared -= n.a;
  volatile _Float16 half = (_Float16)(n.a % 500);
  half = half * 2 + (_Float16)0.5;
  answer[14] = (uint64_t)((float)half * 4);
  volatile long double quarter = (long double)n.b;
  quarter = quarter / 4 + 0.25L;
  answer[15] = (uint64_t)(quarter * 8);
  tc_reply(answer, sizeof answer);
}
