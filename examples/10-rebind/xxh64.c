/* SPDX-License-Identifier: Apache-2.0
 * Version 2 of the library: XXH64 with seed 0, written from its specification; 32 bytes at a time. */
#include "hash.h"

const char hash_name[8] = "xxh64";

static const uint64_t p1 = 0x9e3779b185ebca87, p2 = 0xc2b2ae3d27d4eb4f, p3 = 0x165667b19e3779f9,
                      p4 = 0x85ebca77c2b2ae63, p5 = 0x27d4eb2f165667c5;

static uint64_t rotated(uint64_t value, unsigned bits) { return value << bits | value >> (64 - bits); }
static uint64_t round_of(uint64_t lane, uint64_t word) { return rotated(lane + word * p2, 31) * p1; }
static uint64_t merged(uint64_t value, uint64_t lane) { return (value ^ round_of(0, lane)) * p1 + p4; }

static uint64_t word_at(const unsigned char *at, unsigned bytes) {
  uint64_t word = 0;
  __builtin_memcpy(&word, at, bytes);
  return word;
}

static uint64_t of_lanes(const unsigned char **at, const unsigned char *end) {
  uint64_t lanes[4] = {p1 + p2, p2, 0, -p1};
  for (; end - *at >= 32; *at += 32)
    for (unsigned i = 0; i < 4; ++i) lanes[i] = round_of(lanes[i], word_at(*at + 8 * i, 8));
  uint64_t value = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18);
  for (unsigned i = 0; i < 4; ++i) value = merged(value, lanes[i]);
  return value;
}

uint64_t hash(const void *bytes, size_t size) {
  const unsigned char *at = bytes, *const end = at + size;
  uint64_t value = size >= 32 ? of_lanes(&at, end) : p5;
  value += size;
  for (; end - at >= 8; at += 8) value = rotated(value ^ round_of(0, word_at(at, 8)), 27) * p1 + p4;
  if (end - at >= 4) {
    value = rotated(value ^ word_at(at, 4) * p1, 23) * p2 + p3;
    at += 4;
  }
  for (; at != end; ++at) value = rotated(value ^ *at * p5, 11) * p1;
  value = (value ^ value >> 33) * p2;
  value = (value ^ value >> 29) * p3;
  return value ^ value >> 32;
}
