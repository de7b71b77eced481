/* SPDX-License-Identifier: Apache-2.0
 *
 * A small zstd decoder (RFC 8878) that travels inside an ifunc: freestanding C, no allocation, no tables to set up.
 *
 *     struct zstd_workspace workspace;                       about 135 KiB: the stack will do
 *     long size = zstd_decode(&workspace, out, capacity, in, in_size);
 *
 * Input is hostile: every read and write is bounds-checked, every loop is bounded by the input or the capacity, and
 * bad input gives a negative number (enum zstd_error). Output may then hold part of the text. Checksums are checked
 * where a frame has one. Frames may follow each other; skippable ones are skipped. Dictionaries are not supported.
 *
 * Any number of threads, each with a workspace of its own.
 */
#ifndef THREECHAINS_EXAMPLE_ZSTD_DECODE_H
#define THREECHAINS_EXAMPLE_ZSTD_DECODE_H

#include <stddef.h>
#include <stdint.h>

enum zstd_error {
  zstd_error_truncated = -1,   /* the input ends too early */
  zstd_error_corrupt = -2,     /* it contradicts the format, itself or its checksum */
  zstd_error_unsupported = -3, /* it needs a dictionary */
  zstd_error_capacity = -4,    /* the text is larger than the room for it */
};

enum {
  zstd_block_max = 128 * 1024, /* RFC 8878, 3.1.1.2.4: no block holds more, nor do its literals */
  zstd_huffman_bits_max = 11,  /* 4.2.1 */
  zstd_literal_log_max = 9,    /* 3.1.1.3.2.1: largest accuracy of each table */
  zstd_offset_log_max = 8,
  zstd_match_log_max = 9,
  zstd_weight_log_max = 6,
};

/* One cell of an FSE decoding table (4.1): the symbol, and how to get to the next cell. */
struct zstd_cell {
  uint16_t base;
  uint8_t symbol;
  uint8_t bits;
};

/* A table in use; `log` is its accuracy, `valid` whether an earlier block of this frame left one to repeat. */
struct zstd_table {
  struct zstd_cell* cells;
  unsigned log;
  int valid;
};

struct zstd_prefix {
  uint8_t symbol;
  uint8_t bits;
};

struct zstd_workspace {
  struct zstd_cell literal_cells[1 << zstd_literal_log_max];
  struct zstd_cell offset_cells[1 << zstd_offset_log_max];
  struct zstd_cell match_cells[1 << zstd_match_log_max];
  struct zstd_cell weight_cells[1 << zstd_weight_log_max];
  struct zstd_prefix huffman[1 << zstd_huffman_bits_max];
  struct zstd_table literal_table, offset_table, match_table;
  unsigned huffman_bits; /* 0: no tree yet in this frame */
  uint32_t repeat[3];    /* 3.1.1.5: the three last offsets */
  uint8_t literals[zstd_block_max];
};

/* Where decoded bytes go. `frame` is where the current frame began: matches reach no further back. */
struct zstd_out {
  uint8_t* bytes;
  size_t capacity, size, frame;
};

/* ---- Bytes and bits ---------------------------------------------------------------------------------------- */

/* `count` bytes (8 at most) at `at`, little-endian; those beyond `size` are zero. */
static inline uint64_t zstd_load(const uint8_t* bytes, size_t size, size_t at, size_t count) {
  uint64_t value = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if (count == 8 && size >= 8 && at <= size - 8) {
    __builtin_memcpy(&value, bytes + at, 8); /* the same, but one instruction */
    return value;
  }
#endif
  for (size_t i = 0; i < count && at + i < size; ++i) value |= (uint64_t)bytes[at + i] << (8 * i);
  return value;
}

/* Number of the highest set bit. `value` is not 0. */
static inline unsigned zstd_high_bit(uint32_t value) { return 31u - (unsigned)__builtin_clz(value); }

static inline void zstd_copy(uint8_t* to, const uint8_t* from, size_t size) {
  for (size_t i = 0; i < size; ++i) to[i] = from[i];
}

/* Bits that are read from the end of the bytes towards their beginning (4.1): `left` of them are to come. Reading
 * more than that yields zeroes and makes `left` negative, which is for the caller to see. */
struct zstd_bits {
  const uint8_t* bytes;
  size_t size;
  int64_t left;
};

static inline int zstd_bits_open(struct zstd_bits* bits, const uint8_t* bytes, size_t size) {
  if (size == 0) return zstd_error_truncated;
  if (bytes[size - 1] == 0) return zstd_error_corrupt; /* the highest set bit marks where they begin */
  bits->bytes = bytes;
  bits->size = size;
  bits->left = (int64_t)(size - 1) * 8 + zstd_high_bit(bytes[size - 1]);
  return 0;
}

/* The next `count` bits (32 at most) without taking them. */
static inline uint32_t zstd_bits_peek(const struct zstd_bits* bits, unsigned count) {
  const int64_t at = bits->left - (int64_t)count;
  const uint64_t mask = ((uint64_t)1 << count) - 1;
  if (at >= 0) return (uint32_t)((zstd_load(bits->bytes, bits->size, (size_t)at >> 3, 8) >> (at & 7)) & mask);
  if (bits->left <= 0) return 0;
  return (uint32_t)((zstd_load(bits->bytes, bits->size, 0, 8) << -at) & mask);
}

static inline uint32_t zstd_bits_take(struct zstd_bits* bits, unsigned count) {
  const uint32_t value = zstd_bits_peek(bits, count);
  bits->left -= (int64_t)count;
  return value;
}

/* ---- FSE tables (4.1) -------------------------------------------------------------------------------------- */

/* Spreads the symbols of a distribution over a table. `counts[s]` is -1 for "less than one". */
static int zstd_table_build(struct zstd_cell* cells, unsigned log, const int16_t* counts, unsigned symbols) {
  const unsigned size = 1u << log, mask = size - 1, step = (size >> 1) + (size >> 3) + 3;
  uint16_t next[64];
  unsigned high = size, position = 0;
  for (unsigned s = 0; s < symbols; ++s) {
    next[s] = (uint16_t)(counts[s] < 0 ? 1 : counts[s]);
    if (counts[s] >= 0) continue;
    if (high == 0) return zstd_error_corrupt;
    cells[--high].symbol = (uint8_t)s;
  }
  for (unsigned s = 0; s < symbols; ++s) {
    for (int i = 0; i < counts[s]; ++i) {
      cells[position].symbol = (uint8_t)s;
      do position = (position + step) & mask;
      while (position >= high);
    }
  }
  if (position != 0) return zstd_error_corrupt;
  for (unsigned i = 0; i < size; ++i) {
    const unsigned state = next[cells[i].symbol]++;
    const unsigned bits = log - zstd_high_bit(state);
    cells[i].bits = (uint8_t)bits;
    cells[i].base = (uint16_t)((state << bits) - size);
  }
  return 0;
}

/* Reads a table's description (4.1.1). Returns the bytes that it took, or an error. */
static long zstd_table_read(struct zstd_cell* cells, unsigned* log, unsigned log_max, unsigned symbols_max,
                            const uint8_t* in, size_t size) {
  int16_t counts[64];
  if (size == 0) return zstd_error_truncated;
  *log = (in[0] & 15u) + 5;
  if (*log > log_max) return zstd_error_corrupt;
  size_t at = 4; /* in bits */
  int remaining = 1 << *log;
  unsigned symbols = 0;
  while (remaining > 0) {
    if (symbols >= symbols_max || at > size * 8) return zstd_error_corrupt;
    /* A value below `threshold` is one bit shorter: what cannot occur any more needs no code. */
    const unsigned bits = zstd_high_bit((uint32_t)remaining + 1) + 1;
    const unsigned lower = (1u << (bits - 1)) - 1;
    const unsigned threshold = (1u << bits) - 1 - ((unsigned)remaining + 1);
    unsigned value = (unsigned)(zstd_load(in, size, at >> 3, 4) >> (at & 7)) & ((1u << bits) - 1);
    at += bits;
    if ((value & lower) < threshold) {
      value &= lower;
      at -= 1;
    } else if (value > lower) {
      value -= threshold;
    }
    const int count = (int)value - 1;
    remaining -= count < 0 ? 1 : count;
    counts[symbols++] = (int16_t)count;
    if (count != 0) continue;
    /* Two bits say how many more zeroes follow; three means that two further bits say more. */
    unsigned zeroes;
    do {
      zeroes = (unsigned)(zstd_load(in, size, at >> 3, 2) >> (at & 7)) & 3;
      at += 2;
      for (unsigned i = 0; i < zeroes; ++i) {
        if (symbols >= symbols_max) return zstd_error_corrupt;
        counts[symbols++] = 0;
      }
    } while (zeroes == 3);
  }
  const size_t taken = (at + 7) / 8;
  if (remaining != 0) return zstd_error_corrupt;
  if (taken > size) return zstd_error_truncated;
  const int error = zstd_table_build(cells, *log, counts, symbols);
  return error != 0 ? error : (long)taken;
}

static inline void zstd_state_advance(const struct zstd_table* table, unsigned* state, struct zstd_bits* bits) {
  const struct zstd_cell cell = table->cells[*state];
  *state = cell.base + zstd_bits_take(bits, cell.bits);
}

/* ---- Huffman codes (4.2) ----------------------------------------------------------------------------------- */

/* Weights as an FSE stream (4.2.1.2): two states take turns until the bits are used up. */
static int zstd_weights_read_fse(struct zstd_workspace* w, uint8_t* weights, const uint8_t* in, size_t size) {
  struct zstd_table table = {w->weight_cells, 0, 1};
  const long taken = zstd_table_read(table.cells, &table.log, zstd_weight_log_max, zstd_huffman_bits_max + 2, in, size);
  if (taken < 0) return (int)taken;
  struct zstd_bits bits;
  const int error = zstd_bits_open(&bits, in + taken, size - (size_t)taken);
  if (error != 0) return error;
  unsigned states[2];
  states[0] = zstd_bits_take(&bits, table.log);
  states[1] = zstd_bits_take(&bits, table.log);
  if (bits.left < 0) return zstd_error_corrupt;
  int count = 0;
  for (unsigned turn = 0; count < 254; turn ^= 1) {
    weights[count++] = table.cells[states[turn]].symbol;
    zstd_state_advance(&table, &states[turn], &bits);
    if (bits.left < 0) {
      weights[count++] = table.cells[states[turn ^ 1]].symbol;
      return count;
    }
  }
  return zstd_error_corrupt; /* 255 weights at most: the last symbol's is never written */
}

/* Weights to a table that is indexed by the next `huffman_bits` bits. */
static int zstd_huffman_build(struct zstd_workspace* w, uint8_t* weights, unsigned count) {
  uint32_t sum = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (weights[i] > zstd_huffman_bits_max) return zstd_error_corrupt;
    if (weights[i] != 0) sum += 1u << (weights[i] - 1);
  }
  if (sum == 0) return zstd_error_corrupt;
  const unsigned bits_max = zstd_high_bit(sum) + 1;
  const uint32_t left = (1u << bits_max) - sum; /* what the last symbol, whose weight is left out, fills up */
  if (bits_max > zstd_huffman_bits_max || (left & (left - 1)) != 0) return zstd_error_corrupt;
  weights[count] = (uint8_t)(zstd_high_bit(left) + 1);
  unsigned at = 0;
  for (unsigned weight = 1; weight <= bits_max; ++weight) {
    for (unsigned s = 0; s <= count; ++s) {
      if (weights[s] != weight) continue;
      for (unsigned i = 0; i < 1u << (weight - 1); ++i, ++at) {
        w->huffman[at].symbol = (uint8_t)s;
        w->huffman[at].bits = (uint8_t)(bits_max + 1 - weight);
      }
    }
  }
  w->huffman_bits = bits_max;
  return 0;
}

/* A tree's description (4.2.1). Returns the bytes that it took, or an error. */
static long zstd_huffman_read(struct zstd_workspace* w, const uint8_t* in, size_t size) {
  uint8_t weights[256];
  if (size == 0) return zstd_error_truncated;
  w->huffman_bits = 0;
  size_t taken = 1;
  int count;
  if (in[0] < 128) {
    taken += in[0];
    if (taken > size) return zstd_error_truncated;
    count = zstd_weights_read_fse(w, weights, in + 1, in[0]);
    if (count < 0) return count;
  } else {
    count = in[0] - 127;
    taken += ((size_t)count + 1) / 2;
    if (taken > size) return zstd_error_truncated;
    for (int i = 0; i < count; ++i) weights[i] = i % 2 == 0 ? in[1 + i / 2] >> 4 : in[1 + i / 2] & 15;
  }
  const int error = zstd_huffman_build(w, weights, (unsigned)count);
  return error != 0 ? error : (long)taken;
}

/* Exactly `count` symbols, which must use up all bits. */
static int zstd_huffman_stream(const struct zstd_workspace* w, uint8_t* out, size_t count, const uint8_t* in,
                               size_t size) {
  struct zstd_bits bits;
  const int error = zstd_bits_open(&bits, in, size);
  if (error != 0) return error;
  for (size_t i = 0; i < count; ++i) {
    const struct zstd_prefix prefix = w->huffman[zstd_bits_peek(&bits, w->huffman_bits)];
    bits.left -= prefix.bits;
    if (bits.left < 0) return zstd_error_corrupt;
    out[i] = prefix.symbol;
  }
  return bits.left == 0 ? 0 : zstd_error_corrupt;
}

static int zstd_huffman_four_streams(const struct zstd_workspace* w, uint8_t* out, size_t count, const uint8_t* in,
                                     size_t size) {
  if (size < 6) return zstd_error_truncated;
  const size_t each = (count + 3) / 4;
  if (each * 3 > count) return zstd_error_corrupt;
  size_t at = 6;
  for (unsigned stream = 0; stream < 4; ++stream) {
    const size_t bytes = stream < 3 ? (size_t)zstd_load(in, size, 2 * stream, 2) : size - at;
    if (bytes > size - at) return zstd_error_truncated;
    const size_t symbols = stream < 3 ? each : count - 3 * each;
    const int error = zstd_huffman_stream(w, out + stream * each, symbols, in + at, bytes);
    if (error != 0) return error;
    at += bytes;
  }
  return 0;
}

/* ---- Literals (3.1.1.3.1) ---------------------------------------------------------------------------------- */

struct zstd_literals {
  const uint8_t* bytes;
  size_t size;
};

/* Raw literals and those that repeat one byte. Returns the bytes that they took, or an error. */
static long zstd_literals_plain(struct zstd_workspace* w, struct zstd_literals* literals, const uint8_t* in,
                                size_t size) {
  const unsigned type = in[0] & 3, format = (in[0] >> 2) & 3;
  const size_t header = format == 1 ? 2 : format == 3 ? 3 : 1;
  if (header > size) return zstd_error_truncated;
  const size_t count = (size_t)zstd_load(in, size, 0, header) >> (header == 1 ? 3 : 4);
  if (count > zstd_block_max) return zstd_error_corrupt;
  const size_t stored = type == 0 ? count : 1;
  if (stored > size - header) return zstd_error_truncated;
  literals->size = count;
  literals->bytes = in + header;
  if (type == 1) {
    for (size_t i = 0; i < count; ++i) w->literals[i] = in[header];
    literals->bytes = w->literals;
  }
  return (long)(header + stored);
}

/* Literals in Huffman codes, with a tree or with the one before. Returns the bytes that they took, or an error. */
static long zstd_literals_coded(struct zstd_workspace* w, struct zstd_literals* literals, const uint8_t* in,
                                size_t size) {
  const unsigned type = in[0] & 3, format = (in[0] >> 2) & 3;
  const size_t header = format < 2 ? 3 : format + 2u;
  const unsigned bits = format < 2 ? 10 : format == 2 ? 14 : 18;
  if (header > size) return zstd_error_truncated;
  const uint64_t sizes = zstd_load(in, size, 0, header) >> 4;
  const size_t mask = ((size_t)1 << bits) - 1;
  const size_t count = (size_t)sizes & mask, stored = (size_t)(sizes >> bits) & mask;
  if (count > zstd_block_max) return zstd_error_corrupt;
  if (stored > size - header) return zstd_error_truncated;
  const uint8_t* at = in + header;
  size_t left = stored;
  if (type == 2) {
    const long tree = zstd_huffman_read(w, at, left);
    if (tree < 0) return tree;
    at += tree;
    left -= (size_t)tree;
  } else if (w->huffman_bits == 0) {
    return zstd_error_corrupt; /* there is no tree to use again */
  }
  const int error = format == 0 ? zstd_huffman_stream(w, w->literals, count, at, left)
                                : zstd_huffman_four_streams(w, w->literals, count, at, left);
  if (error != 0) return error;
  literals->bytes = w->literals;
  literals->size = count;
  return (long)(header + stored);
}

/* ---- Sequences (3.1.1.3.2) --------------------------------------------------------------------------------- */

/* Reads one of the three tables in the mode that the header asks for. Returns the bytes that it took, or an error. */
static long zstd_sequence_table(struct zstd_table* table, unsigned mode, const int16_t* defaults,
                                unsigned default_symbols, unsigned default_log, unsigned log_max, unsigned symbols_max,
                                const uint8_t* in, size_t size) {
  long taken = 0;
  switch (mode) {
    case 0: /* the distribution that the RFC has for all */
      table->log = default_log;
      taken = zstd_table_build(table->cells, default_log, defaults, default_symbols);
      break;
    case 1: /* one symbol only */
      if (size == 0) return zstd_error_truncated;
      if (in[0] >= symbols_max) return zstd_error_corrupt;
      table->log = 0;
      table->cells[0] = (struct zstd_cell){0, in[0], 0};
      taken = 1;
      break;
    case 2: /* described here */
      table->valid = 0;
      taken = zstd_table_read(table->cells, &table->log, log_max, symbols_max, in, size);
      break;
    default: /* as in the block before */ return table->valid ? 0 : zstd_error_corrupt;
  }
  table->valid = taken >= 0;
  return taken;
}

/* Baselines and extra bits of literal lengths and match lengths, 3.1.1.3.2.1.1. */
static inline uint32_t zstd_literal_length(unsigned code, struct zstd_bits* bits) {
  static const uint8_t extra[36] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
                                    1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  static const uint32_t base[36] = {0,  1,  2,   3,   4,   5,    6,    7,    8,    9,     10,    11,
                                    12, 13, 14,  15,  16,  18,   20,   22,   24,   28,    32,    40,
                                    48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
  return base[code] + zstd_bits_take(bits, extra[code]);
}

static inline uint32_t zstd_match_length(unsigned code, struct zstd_bits* bits) {
  static const uint8_t extra[21] = {1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  static const uint32_t base[21] = {35,  37,  39,  41,   43,   47,   51,   59,    67,    83,   99,
                                    131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539};
  if (code < 32) return code + 3;
  return base[code - 32] + zstd_bits_take(bits, extra[code - 32]);
}

/* The distance that an offset value means, 3.1.1.5; 0 when there is none. */
static inline uint32_t zstd_resolve_offset(uint32_t* repeat, uint32_t value, uint32_t literal_length) {
  const uint32_t which = value + (literal_length == 0);
  uint32_t offset;
  if (value > 3)
    offset = value - 3;
  else if (which == 1)
    return repeat[0];
  else
    offset = which == 4 ? repeat[0] - 1 : repeat[which - 1];
  if (value > 3 || which != 2) repeat[2] = repeat[1];
  repeat[1] = repeat[0];
  repeat[0] = offset;
  return offset;
}

/* Appends to the output; `limit` is where this block's output must end. */
static inline int zstd_emit_literals(struct zstd_out* out, size_t limit, struct zstd_literals* literals, size_t count) {
  if (count > literals->size) return zstd_error_corrupt;
  if (count > limit - out->size) return limit < out->capacity ? zstd_error_corrupt : zstd_error_capacity;
  zstd_copy(out->bytes + out->size, literals->bytes, count);
  out->size += count;
  literals->bytes += count;
  literals->size -= count;
  return 0;
}

static inline int zstd_emit_match(struct zstd_out* out, size_t limit, uint32_t offset, size_t count) {
  if (offset == 0 || offset > out->size - out->frame) return zstd_error_corrupt;
  if (count > limit - out->size) return limit < out->capacity ? zstd_error_corrupt : zstd_error_capacity;
  uint8_t* to = out->bytes + out->size;
  for (size_t i = 0; i < count; ++i) to[i] = (to - offset)[i]; /* may overlap: that is how runs are written */
  out->size += count;
  return 0;
}

static int zstd_sequences_run(struct zstd_workspace* w, struct zstd_out* out, size_t limit,
                              struct zstd_literals* literals, unsigned count, const uint8_t* in, size_t size) {
  struct zstd_bits bits;
  int error = zstd_bits_open(&bits, in, size);
  if (error != 0) return error;
  unsigned literal_state = zstd_bits_take(&bits, w->literal_table.log);
  unsigned offset_state = zstd_bits_take(&bits, w->offset_table.log);
  unsigned match_state = zstd_bits_take(&bits, w->match_table.log);
  for (unsigned i = 0; i < count; ++i) {
    const unsigned offset_code = w->offset_table.cells[offset_state].symbol;
    const uint32_t offset_value = (1u << offset_code) + zstd_bits_take(&bits, offset_code);
    const uint32_t match = zstd_match_length(w->match_table.cells[match_state].symbol, &bits);
    const uint32_t literal = zstd_literal_length(w->literal_table.cells[literal_state].symbol, &bits);
    if (i + 1 < count) {
      zstd_state_advance(&w->literal_table, &literal_state, &bits);
      zstd_state_advance(&w->match_table, &match_state, &bits);
      zstd_state_advance(&w->offset_table, &offset_state, &bits);
    }
    if (bits.left < 0) return zstd_error_corrupt;
    error = zstd_emit_literals(out, limit, literals, literal);
    if (error == 0) error = zstd_emit_match(out, limit, zstd_resolve_offset(w->repeat, offset_value, literal), match);
    if (error != 0) return error;
  }
  return bits.left == 0 ? 0 : zstd_error_corrupt;
}

/* Reads the sequences' header and tables, then runs them. */
static int zstd_sequences(struct zstd_workspace* w, struct zstd_out* out, size_t limit, struct zstd_literals* literals,
                          const uint8_t* in, size_t size) {
  static const int16_t literal_counts[36] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                             2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
  static const int16_t offset_counts[29] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
  static const int16_t match_counts[53] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                           1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                           1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
  if (size == 0) return zstd_error_truncated;
  const size_t header = in[0] < 128 ? 1 : in[0] < 255 ? 2 : 3;
  if (header > size) return zstd_error_truncated;
  const unsigned count = in[0] < 128   ? in[0]
                         : in[0] < 255 ? ((in[0] - 128u) << 8) + in[1]
                                       : in[1] + ((unsigned)in[2] << 8) + 0x7f00;
  if (count == 0) return size == header ? 0 : zstd_error_corrupt;
  if (header + 1 > size) return zstd_error_truncated;
  const unsigned modes = in[header];
  if ((modes & 3) != 0) return zstd_error_corrupt; /* reserved */
  size_t at = header + 1;
  long taken = zstd_sequence_table(&w->literal_table, modes >> 6, literal_counts, 36, 6, zstd_literal_log_max, 36,
                                   in + at, size - at);
  if (taken < 0) return (int)taken;
  at += (size_t)taken;
  taken = zstd_sequence_table(&w->offset_table, (modes >> 4) & 3, offset_counts, 29, 5, zstd_offset_log_max, 32,
                              in + at, size - at);
  if (taken < 0) return (int)taken;
  at += (size_t)taken;
  taken = zstd_sequence_table(&w->match_table, (modes >> 2) & 3, match_counts, 53, 6, zstd_match_log_max, 53, in + at,
                              size - at);
  if (taken < 0) return (int)taken;
  at += (size_t)taken;
  return zstd_sequences_run(w, out, limit, literals, count, in + at, size - at);
}

/* ---- Blocks (3.1.1.2) -------------------------------------------------------------------------------------- */

static int zstd_block_compressed(struct zstd_workspace* w, struct zstd_out* out, size_t limit, const uint8_t* in,
                                 size_t size) {
  struct zstd_literals literals = {NULL, 0};
  if (size == 0) return zstd_error_truncated;
  const long taken =
      (in[0] & 3) < 2 ? zstd_literals_plain(w, &literals, in, size) : zstd_literals_coded(w, &literals, in, size);
  if (taken < 0) return (int)taken;
  const int error = zstd_sequences(w, out, limit, &literals, in + taken, size - (size_t)taken);
  if (error != 0) return error;
  return zstd_emit_literals(out, limit, &literals, literals.size); /* those after the last match */
}

/* One block with its header; `*last` says whether it was the frame's last. Returns the bytes that it took, or an
 * error. */
static long zstd_block(struct zstd_workspace* w, struct zstd_out* out, size_t block_max, int* last, const uint8_t* in,
                       size_t size) {
  if (size < 3) return zstd_error_truncated;
  const uint32_t header = (uint32_t)zstd_load(in, size, 0, 3);
  const unsigned type = (header >> 1) & 3;
  const size_t block = header >> 3, stored = type == 1 ? 1 : block;
  *last = header & 1;
  if (type == 3 || block > block_max) return zstd_error_corrupt;
  if (stored > size - 3) return zstd_error_truncated;
  const size_t room = out->capacity - out->size;
  if (type != 2 && block > room) return zstd_error_capacity;
  if (type == 0) {
    zstd_copy(out->bytes + out->size, in + 3, block);
    out->size += block;
  } else if (type == 1) {
    for (size_t i = 0; i < block; ++i) out->bytes[out->size + i] = in[3];
    out->size += block;
  } else {
    const size_t limit = out->size + (room < block_max ? room : block_max);
    const int error = zstd_block_compressed(w, out, limit, in + 3, block);
    if (error != 0) return error;
  }
  return (long)(3 + stored);
}

/* ---- Frames (3.1.1) ---------------------------------------------------------------------------------------- */

/* XXH64 with seed 0, of which a frame's checksum is the low half. */
static uint64_t zstd_xxh64(const uint8_t* bytes, size_t size) {
  const uint64_t p1 = 0x9e3779b185ebca87u, p2 = 0xc2b2ae3d27d4eb4fu, p3 = 0x165667b19e3779f9u, p4 = 0x85ebca77c2b2ae63u,
                 p5 = 0x27d4eb2f165667c5u;
#define ZSTD_ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))
#define ZSTD_ROUND(sum, input) (ZSTD_ROTATE((sum) + (input) * p2, 31) * p1)
  uint64_t hash = p5;
  size_t at = 0;
  if (size >= 32) {
    uint64_t sums[4] = {p1 + p2, p2, 0, 0 - p1};
    for (; size - at >= 32; at += 32)
      for (unsigned i = 0; i < 4; ++i) sums[i] = ZSTD_ROUND(sums[i], zstd_load(bytes, size, at + 8 * i, 8));
    hash = ZSTD_ROTATE(sums[0], 1) + ZSTD_ROTATE(sums[1], 7) + ZSTD_ROTATE(sums[2], 12) + ZSTD_ROTATE(sums[3], 18);
    for (unsigned i = 0; i < 4; ++i) hash = (hash ^ ZSTD_ROUND((uint64_t)0, sums[i])) * p1 + p4;
  }
  hash += size;
  for (; size - at >= 8; at += 8)
    hash = ZSTD_ROTATE(hash ^ ZSTD_ROUND((uint64_t)0, zstd_load(bytes, size, at, 8)), 27) * p1 + p4;
  if (size - at >= 4) {
    hash = ZSTD_ROTATE(hash ^ zstd_load(bytes, size, at, 4) * p1, 23) * p2 + p3;
    at += 4;
  }
  for (; at < size; ++at) hash = ZSTD_ROTATE(hash ^ bytes[at] * p5, 11) * p1;
  hash = (hash ^ hash >> 33) * p2;
  hash = (hash ^ hash >> 29) * p3;
  return hash ^ hash >> 32;
#undef ZSTD_ROUND
#undef ZSTD_ROTATE
}

struct zstd_frame {
  uint64_t content_size; /* all ones when the frame does not say */
  size_t block_max;
  size_t header_size;
  int has_checksum;
};

/* Reads a frame's header, from its magic number on. */
static int zstd_frame_read(struct zstd_frame* frame, const uint8_t* in, size_t size) {
  static const uint8_t id_sizes[4] = {0, 1, 2, 4};
  if (size < 6) return zstd_error_truncated;
  if (zstd_load(in, size, 0, 4) != 0xfd2fb528u) return zstd_error_corrupt;
  const unsigned descriptor = in[4], single_segment = (descriptor >> 5) & 1;
  if ((descriptor & 8) != 0) return zstd_error_corrupt; /* reserved */
  const unsigned id_size = id_sizes[descriptor & 3];
  const unsigned content_bytes = (descriptor >> 6) == 0 ? single_segment : 1u << (descriptor >> 6);
  const size_t window_at = 5, id_at = window_at + !single_segment, content_at = id_at + id_size;
  frame->header_size = content_at + content_bytes;
  if (frame->header_size > size) return zstd_error_truncated;
  if (zstd_load(in, size, id_at, id_size) != 0) return zstd_error_unsupported;
  frame->has_checksum = (descriptor >> 2) & 1;
  frame->content_size = zstd_load(in, size, content_at, content_bytes) + (content_bytes == 2 ? 256 : 0);
  uint64_t window = frame->content_size;
  if (!single_segment) {
    const uint64_t base = (uint64_t)1 << (10 + (in[window_at] >> 3));
    window = base + (base >> 3) * (in[window_at] & 7);
  }
  if (content_bytes == 0) frame->content_size = ~(uint64_t)0;
  frame->block_max = window < zstd_block_max ? (size_t)window : zstd_block_max;
  return 0;
}

/* Returns the bytes that the frame took, or an error. */
static long zstd_frame_decode(struct zstd_workspace* w, struct zstd_out* out, const uint8_t* in, size_t size) {
  struct zstd_frame frame;
  const int error = zstd_frame_read(&frame, in, size);
  if (error != 0) return error;
  w->literal_table = (struct zstd_table){w->literal_cells, 0, 0};
  w->offset_table = (struct zstd_table){w->offset_cells, 0, 0};
  w->match_table = (struct zstd_table){w->match_cells, 0, 0};
  w->huffman_bits = 0;
  w->repeat[0] = 1;
  w->repeat[1] = 4;
  w->repeat[2] = 8;
  out->frame = out->size;
  size_t at = frame.header_size;
  for (int last = 0; !last;) {
    const long taken = zstd_block(w, out, frame.block_max, &last, in + at, size - at);
    if (taken < 0) return taken;
    at += (size_t)taken;
  }
  const size_t content = out->size - out->frame;
  if (frame.content_size != ~(uint64_t)0 && frame.content_size != content) return zstd_error_corrupt;
  if (frame.has_checksum) {
    if (size - at < 4) return zstd_error_truncated;
    if (zstd_load(in, size, at, 4) != (zstd_xxh64(out->bytes + out->frame, content) & 0xffffffffu))
      return zstd_error_corrupt;
    at += 4;
  }
  return (long)at;
}

/* The size of the text as the first frame's header has it; -1 when it does not say. Believe it only up to a limit. */
static inline long long zstd_content_size(const void* in, size_t size) {
  struct zstd_frame frame;
  if (zstd_frame_read(&frame, (const uint8_t*)in, size) != 0 || frame.content_size > INT64_MAX) return -1;
  return (long long)frame.content_size;
}

/* Decodes all of `in`. Returns the size of the text, or an error. */
static inline long zstd_decode(struct zstd_workspace* workspace, void* out, size_t capacity, const void* in,
                               size_t size) {
  struct zstd_out text = {(uint8_t*)out, capacity, 0, 0};
  const uint8_t* bytes = (const uint8_t*)in;
  if (size == 0) return zstd_error_truncated;
  for (size_t at = 0; at < size;) {
    if (size - at >= 8 && (zstd_load(bytes, size, at, 4) & 0xfffffff0u) == 0x184d2a50u) { /* 3.1.2: skippable */
      const size_t skipped = (size_t)zstd_load(bytes, size, at + 4, 4);
      if (skipped > size - at - 8) return zstd_error_truncated;
      at += 8 + skipped;
      continue;
    }
    const long taken = zstd_frame_decode(workspace, &text, bytes + at, size - at);
    if (taken < 0) return taken;
    at += (size_t)taken;
  }
  return (long)text.size;
}

#endif
