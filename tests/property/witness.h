/* SPDX-License-Identifier: Apache-2.0
 *
 * What a message of the property test looks like, and what the ifunc `witness` writes down where it runs. For the ifunc
 * and for the program that sends it.
 */
#ifndef TC_TESTS_PROPERTY_WITNESS_H
#define TC_TESTS_PROPERTY_WITNESS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A payload: this head, then bytes that follow from `source` and `number`. A shorter payload has the first bytes of the
 * head; one of less than 8 bytes tells only its source, in each byte. */
struct witness_head {
  uint32_t number; /* of the message at its source */
  uint8_t source;  /* the node that sent it first */
  uint8_t hop;     /* how many nodes it went through before this one */
  uint8_t hops;    /* how many more it goes to, in all */
  uint8_t then;    /* what it does at the last one */
  uint8_t route[4];
  uint32_t reply_size;
  uint32_t size; /* of the payload */
  uint32_t check;
};

enum { WITNESS_ENDS, WITNESS_REPLIES, WITNESS_FAILS };
enum { WITNESS_NODE = 15, WITNESS_FORWARDS = 16, WITNESS_FORWARDS_AS = 32, WITNESS_INJECTS = 64 }; /* of a route */
enum { WITNESS_MOST_HOPS = 4, WITNESS_NAMED = 8, WITNESS_LARGEST = 4 << 20 };
enum { WITNESS_FAILED = 7, WITNESS_CANNOT_GO_ON = 1000 }; /* codes of tc_fail(); the latter plus a status */

/* One run. `seq` is a time of the test's clock, which all nodes of a test share. */
struct witness_run {
  uint64_t seq;
  uint32_t number;
  uint32_t size;
  uint16_t incarnation; /* how many nodes of this number there were before */
  uint8_t source;
  uint8_t hop;
  uint8_t verdict;
  uint8_t status; /* of tc_forward(), tc_inject() or tc_reply() */
  uint8_t action; /* which of them: a bit of a route, or 0 */
  uint8_t complete;
};

enum { WITNESS_GOOD, WITNESS_TINY, WITNESS_BAD_HEAD, WITNESS_BAD_SIZE, WITNESS_BAD_BODY };

/* Named data "runs" of a node. */
struct witness_runs {
  uint64_t count; /* of all runs, also those for which there was no room */
  uint32_t incarnation;
  uint32_t capacity;
  struct witness_run run[];
};

static inline uint64_t witness_key(uint32_t source, uint32_t number, int is_reply) {
  const uint64_t mixed = ((uint64_t)source << 40 | (uint64_t)is_reply << 36 | number) * 0x9e3779b97f4a7c15u;
  return mixed ^ mixed >> 29;
}

static inline uint64_t witness_word(uint64_t key, uint64_t index) {
  const uint64_t mixed = key + index * 0xd1342543de82ef95u;
  return mixed ^ mixed >> 31;
}

/* Bytes from `from` on, a multiple of 8, of a payload or an answer. */
static inline void witness_fill(unsigned char* bytes, size_t from, size_t size, uint64_t key) {
  size_t at = from;
  for (; at + 8 <= size; at += 8) {
    const uint64_t word = witness_word(key, at / 8);
    memcpy(bytes + at, &word, 8);
  }
  const uint64_t last = witness_word(key, at / 8);
  if (at < size) memcpy(bytes + at, &last, size - at);
}

/* The first 8 bytes that are not as they should be; `size` when all are. */
static inline size_t witness_difference(const unsigned char* bytes, size_t from, size_t size, uint64_t key) {
  size_t at = from;
  for (; at + 8 <= size; at += 8) {
    uint64_t word;
    memcpy(&word, bytes + at, 8);
    if (word != witness_word(key, at / 8)) return at;
  }
  const uint64_t last = witness_word(key, at / 8);
  return at < size && memcmp(bytes + at, &last, size - at) != 0 ? at : size;
}

static inline uint32_t witness_check(const struct witness_head* head) {
  struct witness_head copy = *head;
  copy.check = 0;
  uint64_t sum = 0x2545f4914f6cdd1du;
  for (size_t at = 0; at < sizeof copy; at += 4) {
    uint32_t word;
    memcpy(&word, (const char*)&copy + at, 4);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
  }
  return (uint32_t)(sum >> 32);
}

#endif
