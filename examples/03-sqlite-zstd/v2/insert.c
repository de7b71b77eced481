/* SPDX-License-Identifier: Apache-2.0
 *
 * The ifunc `insert`, changed: fills the column `words` as well. The name is the same, the content is not, so nodes
 * that know the first version cannot take it for this one.
 */
#include "../record.h"

size_t insert_payload_bound(void *text, size_t text_size) {
  (void)text;
  return record_bound(text_size);
}

int insert_payload_init(void *text, size_t text_size, void *payload, size_t *payload_size) {
  return record_compress(text, text_size, payload, payload_size);
}

static int count_words(const char *text, size_t size) {
  int words = 0, inside = 0;
  for (size_t i = 0; i < size; ++i) {
    const int blank = text[i] == ' ' || text[i] == '\n';
    words += inside == 0 && !blank;
    inside = !blank;
  }
  return words;
}

void insert_main(void *payload, size_t payload_size, void *target_args) {
  sqlite3 *database = target_args;
  sqlite3_stmt *statement;
  size_t size;
  char *text = record_decode(payload, payload_size, &size);
  if (text == NULL) return;
  if (sqlite3_prepare_v2(database, "INSERT INTO records (title, text, words) VALUES (?1, ?2, ?3)", -1, &statement,
                         NULL) != SQLITE_OK) {
    sqlite3_free(text);
    tc_fail(sqlite3_errcode(database), sqlite3_errmsg(database));
    return;
  }
  sqlite3_bind_text64(statement, 1, text, record_title_size(text, size), SQLITE_TRANSIENT, SQLITE_UTF8);
  sqlite3_bind_int(statement, 3, count_words(text, size));
  sqlite3_bind_text64(statement, 2, text, size, sqlite3_free, SQLITE_UTF8); /* takes the text over */
  record_run(database, statement);
}
