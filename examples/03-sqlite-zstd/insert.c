/* SPDX-License-Identifier: Apache-2.0
 *
 * The ifunc `insert`, first version: fills the columns `title` and `text`. The target passes its database.
 */
#include "record.h"

size_t insert_payload_bound(void *text, size_t text_size) {
  (void)text;
  return record_bound(text_size);
}

int insert_payload_init(void *text, size_t text_size, void *payload, size_t *payload_size) {
  return record_compress(text, text_size, payload, payload_size);
}

void insert_main(void *payload, size_t payload_size, void *target_args) {
  sqlite3 *database = target_args;
  sqlite3_stmt *statement;
  size_t size;
  char *text = record_decode(payload, payload_size, &size);
  if (text == NULL) return;
  if (sqlite3_prepare_v2(database, "INSERT INTO records (title, text) VALUES (?1, ?2)", -1, &statement, NULL) !=
      SQLITE_OK) {
    sqlite3_free(text);
    tc_fail(sqlite3_errcode(database), sqlite3_errmsg(database));
    return;
  }
  sqlite3_bind_text64(statement, 1, text, record_title_size(text, size), SQLITE_TRANSIENT, SQLITE_UTF8);
  sqlite3_bind_text64(statement, 2, text, size, sqlite3_free, SQLITE_UTF8); /* takes the text over */
  record_run(database, statement);
}
