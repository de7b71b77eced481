/* SPDX-License-Identifier: Apache-2.0
 *
 * What both versions of the ifunc `insert` share. At the source: a record's text is compressed with libzstd straight
 * into the message. At the target: it is decoded by code that came along, because the node has no zstd, into memory
 * of SQLite's own, so that SQLite can take it over without a copy.
 */
#ifndef THREECHAINS_EXAMPLE_RECORD_H
#define THREECHAINS_EXAMPLE_RECORD_H

#include <sqlite3.h>
#include <threechains/ifunc.h>
#include <zstd.h>

#include "zstd_decode.h"

enum {
  record_bytes_max = 16 << 20, /* a payload of a few bytes can claim to hold any number */
  record_level = 19,           /* the source has time; decoding costs the same at every level */
};

/* ---- At the source: the source args are the record's text -------------------------------------------------- */

static inline size_t record_bound(size_t text_size) { return ZSTD_compressBound(text_size); }

static inline int record_compress(const void* text, size_t text_size, void* payload, size_t* payload_size) {
  const size_t size = ZSTD_compress(payload, *payload_size, text, text_size, record_level);
  if (ZSTD_isError(size)) return -1;
  *payload_size = size;
  return 0;
}

/* ---- At the target ----------------------------------------------------------------------------------------- */

/* The record's text, to be freed with sqlite3_free(); NULL after a tc_fail() that says why. */
static inline char* record_decode(const void* payload, size_t payload_size, size_t* text_size) {
  struct zstd_workspace workspace;
  const long long claimed = zstd_content_size(payload, payload_size);
  if (claimed < 0 || claimed > record_bytes_max) {
    tc_fail(zstd_error_corrupt, "the record is not zstd, does not say how large it is, or is larger than 16 MiB");
    return NULL;
  }
  char* text = sqlite3_malloc64((sqlite3_uint64)claimed + 1);
  if (text == NULL) {
    tc_fail(SQLITE_NOMEM, "no memory for the record");
    return NULL;
  }
  const long size = zstd_decode(&workspace, text, (size_t)claimed, payload, payload_size);
  if (size < 0) {
    sqlite3_free(text);
    tc_fail((int32_t)size, "the record's zstd data is damaged");
    return NULL;
  }
  text[size] = 0;
  *text_size = (size_t)size;
  return text;
}

/* The record's title: its first line, or the beginning of that. */
static inline size_t record_title_size(const char* text, size_t text_size) {
  size_t size = 0;
  while (size < text_size && size < 60 && text[size] != '\n') ++size;
  while (size > 0 && size < text_size && ((unsigned char)text[size] & 0xc0) == 0x80) --size; /* not inside a letter */
  return size;
}

/* Runs a prepared statement once and frees it. */
static inline void record_run(sqlite3* database, sqlite3_stmt* statement) {
  if (sqlite3_step(statement) != SQLITE_DONE) tc_fail(sqlite3_errcode(database), sqlite3_errmsg(database));
  sqlite3_finalize(statement);
}

#endif
