/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns of Arrow tables that a node has as named data, for ifuncs in C and C++. The Python package maps the tables
 * (docs/arrow.md); no library of Arrow's is needed here. In an ifunc:
 *
 *     tc_arrow_column_t fare;
 *     if (tc_arrow_column("trips.fare", &fare) != TC_OK) return tc_fail(1, "no column of fares");
 *     const double *values = fare.array.buffers[1];
 *     for (int64_t i = 0; i < fare.array.length; ++i)
 *       if (tc_arrow_is_valid(&fare, i)) total += values[i];
 *
 * `schema.format` says what the buffers hold, as the Arrow C data interface defines it: "g" are doubles. Both structs can
 * be handed to whatever takes that interface. They are read-only, own nothing, and hold as long as tc_data() does.
 */
#ifndef THREECHAINS_ARROW_H
#define THREECHAINS_ARROW_H

#include "ifunc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* https://arrow.apache.org/docs/format/CDataInterface.html */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

#endif

/* ---- The directory ---------------------------------------------------------------------------------------------
 *
 * The columns of data "trips" are described by data "trips.columns": the header, an entry for each column, and texts that
 * end with a zero byte. All numbers are little-endian. Places and sizes are in bytes: those of texts from the directory's
 * beginning, those of buffers from the beginning of "trips". */

#define TC_ARROW_MAGIC 0x0031534c4f434354u /* "TCCOLS1" and a zero byte, as they lie in memory */

typedef struct tc_arrow_directory {
  uint64_t magic;
  uint64_t count; /* of the entries behind it */
} tc_arrow_directory_t;

typedef struct tc_arrow_entry {
  uint64_t name;       /* place of the column's name */
  uint64_t format;     /* place of Arrow's format string */
  uint64_t type;       /* TC_ARROW_TYPE() */
  uint64_t length;     /* rows */
  uint64_t null_count; /* rows without a value */
  struct {
    uint64_t place, size;
  } buffers[3]; /* validity (size 0: all rows are valid); values, or offsets of texts; bytes of texts */
} tc_arrow_entry_t;

/* What one element is: 'i' signed, 'u' unsigned, 'f' floating, of 1 to 8 bytes; 'b' bits, of 0 bytes; 'S' texts and
 * bytes, by offsets of 4 or 8 bytes; 0: a column that is there and cannot be used. */
#define TC_ARROW_TYPE(kind, size) ((uint64_t)(kind) | (uint64_t)(size) << 8)

/* ---- Columns --------------------------------------------------------------------------------------------------- */

/* It points into itself: do not copy it. */
typedef struct tc_arrow_column {
  struct ArrowSchema schema;
  struct ArrowArray array;
  const void *buffers[3]; /* array.buffers */
  uint64_t text_bytes;    /* size of buffers[2] */
} tc_arrow_column_t;

static inline void tc_arrow_release_schema(struct ArrowSchema *schema) { schema->release = NULL; }
static inline void tc_arrow_release_array(struct ArrowArray *array) { array->release = NULL; }

static inline int tc_arrow_same_text(const char *one, const char *other) {
  while (*one != 0 && *one == *other) ++one, ++other;
  return *one == *other;
}

/* Does the buffer lie in `size` bytes, and does it have `needed` ones, at a multiple of `alignment`? */
static inline int tc_arrow_lies_in(const tc_arrow_entry_t *entry, int buffer, size_t size, uint64_t needed,
                                   uint64_t alignment) {
  const uint64_t place = entry->buffers[buffer].place, has = entry->buffers[buffer].size;
  return place <= size && has <= size - place && has >= needed && place % alignment == 0;
}

/* Are all buffers where the entry says, and large enough for its rows? */
static inline int tc_arrow_is_sound(const tc_arrow_entry_t *entry, size_t size) {
  const uint64_t length = entry->length, width = entry->type >> 8;
  const int is_text = (entry->type & 255) == 'S';
  if (width > 8 || length > (uint64_t)1 << 56) return 0;
  const uint64_t elements = length + (is_text && length != 0 ? 1 : 0);
  const uint64_t bits = (length + 7) / 8;
  return tc_arrow_lies_in(entry, 0, size, entry->null_count != 0 ? bits : 0, 1) &&
         (entry->buffers[0].size == 0 || entry->buffers[0].size >= bits) &&
         tc_arrow_lies_in(entry, 1, size, width != 0 ? elements * width : bits, width != 0 ? width : 1) &&
         tc_arrow_lies_in(entry, 2, size, 0, 1);
}

/* The entry of a column, or NULL. `columns` is the directory of `size` bytes. */
static inline const tc_arrow_entry_t *tc_arrow_entry(const void *columns, size_t size, const char *name) {
  const tc_arrow_directory_t *const directory = (const tc_arrow_directory_t *)columns;
  const char *const texts = (const char *)columns;
  if (size <= sizeof *directory || directory->magic != TC_ARROW_MAGIC || texts[size - 1] != 0) return NULL;
  const tc_arrow_entry_t *entry = (const tc_arrow_entry_t *)(directory + 1);
  if (directory->count > (size - sizeof *directory) / sizeof *entry) return NULL;
  for (uint64_t i = 0; i < directory->count; ++i, ++entry)
    if (entry->name < size && entry->format < size && tc_arrow_same_text(texts + entry->name, name)) return entry;
  return NULL;
}

/* Finds a column: `name` is the data's name, a dot, and the column's. TC_ERR_NOT_FOUND: this node has no such column.
 * TC_ERR_UNSUPPORTED: it has, of a type that is not for ifuncs, such as a list. TC_ERR_MALFORMED: the data is shorter than
 * its directory says. */
static inline tc_status_t tc_arrow_column(const char *name, tc_arrow_column_t *column) {
  static const char suffix[] = ".columns";
  char data_name[256];
  size_t dot = 0, size = 0, columns_size = 0;
  while (name[dot] != 0 && name[dot] != '.') ++dot;
  if (name[dot] == 0 || dot + sizeof suffix > sizeof data_name) return TC_ERR_NOT_FOUND;
  for (size_t i = 0; i < dot; ++i) data_name[i] = name[i];
  data_name[dot] = 0;
  char *const data = (char *)tc_data(data_name, &size);
  for (size_t i = 0; i < sizeof suffix; ++i) data_name[dot + i] = suffix[i];
  const char *const columns = (const char *)tc_data(data_name, &columns_size);
  if (data == NULL || columns == NULL) return TC_ERR_NOT_FOUND;
  const tc_arrow_entry_t *const entry = tc_arrow_entry(columns, columns_size, name + dot + 1);
  if (entry == NULL) return TC_ERR_NOT_FOUND;
  if (entry->type == 0) return TC_ERR_UNSUPPORTED;
  if (!tc_arrow_is_sound(entry, size)) return TC_ERR_MALFORMED;

  const int is_text = (entry->type & 255) == 'S';
  column->buffers[0] = entry->buffers[0].size != 0 ? data + entry->buffers[0].place : NULL;
  column->buffers[1] = data + entry->buffers[1].place;
  column->buffers[2] = is_text ? data + entry->buffers[2].place : NULL;
  column->text_bytes = entry->buffers[2].size;
  column->schema.format = columns + entry->format;
  column->schema.name = columns + entry->name;
  column->schema.metadata = NULL;
  column->schema.flags = ARROW_FLAG_NULLABLE;
  column->schema.n_children = 0;
  column->schema.children = NULL;
  column->schema.dictionary = NULL;
  column->schema.release = tc_arrow_release_schema;
  column->schema.private_data = NULL;
  column->array.length = (int64_t)entry->length;
  column->array.null_count = (int64_t)entry->null_count;
  column->array.offset = 0;
  column->array.n_buffers = is_text ? 3 : 2;
  column->array.n_children = 0;
  column->array.buffers = column->buffers;
  column->array.children = NULL;
  column->array.dictionary = NULL;
  column->array.release = tc_arrow_release_array;
  column->array.private_data = NULL;
  return TC_OK;
}

/* Has this row a value? `row` is 0 to array.length - 1. */
static inline int tc_arrow_is_valid(const tc_arrow_column_t *column, int64_t row) {
  const uint8_t *const validity = (const uint8_t *)column->buffers[0];
  return validity == NULL || (validity[row / 8] >> (row % 8) & 1) != 0;
}

/* The text or bytes of a row, in a column of formats "u", "z", "U" and "Z". NULL for other columns, and where the
 * column's offsets lead out of its bytes. There is no zero byte behind it. */
static inline const char *tc_arrow_text(const tc_arrow_column_t *column, int64_t row, size_t *size) {
  const char format = column->schema.format[0];
  int64_t begin = 0, end = 0;
  *size = 0;
  if (format == 'u' || format == 'z') {
    const int32_t *const offsets = (const int32_t *)column->buffers[1];
    begin = offsets[row], end = offsets[row + 1];
  } else if (format == 'U' || format == 'Z') {
    const int64_t *const offsets = (const int64_t *)column->buffers[1];
    begin = offsets[row], end = offsets[row + 1];
  } else {
    return NULL;
  }
  if (begin < 0 || end < begin || (uint64_t)end > column->text_bytes) return NULL;
  *size = (size_t)(end - begin);
  return (const char *)column->buffers[2] + begin;
}

#ifdef __cplusplus
}
#endif
#endif
