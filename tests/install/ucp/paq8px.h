/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for the codec and the database of the 2021 paper's example: runs of a byte become a count and the byte. */
#ifndef PAQ8PX_H
#define PAQ8PX_H

#include <stddef.h>
#include <string.h>

/* The database, at the target. */
typedef struct database {
  size_t records, size;
  char record[4096];
}* db_handler;

static inline size_t est_output_size(const void* record, size_t size) {
  (void)record;
  return 2 * size + 1;
}

/* Ends with a count of zero: the paper's payload_init cannot say that the payload came out smaller. */
static inline void encode(void* payload, size_t payload_size, const void* record, size_t size) {
  unsigned char* out = payload;
  const unsigned char* in = record;
  memset(payload, 0, payload_size);
  for (size_t i = 0; i < size;) {
    size_t run = 1;
    while (run < 255 && i + run < size && in[i + run] == in[i]) ++run;
    *out++ = (unsigned char)run;
    *out++ = in[i];
    i += run;
  }
}

static inline void decode_insert(db_handler db, const void* payload, size_t payload_size) {
  const unsigned char* in = payload;
  db->size = 0;
  for (size_t i = 0; i + 1 < payload_size && in[i] != 0 && db->size + in[i] <= sizeof db->record; i += 2) {
    memset(db->record + db->size, in[i + 1], in[i]);
    db->size += in[i];
  }
  ++db->records;
}

#endif
