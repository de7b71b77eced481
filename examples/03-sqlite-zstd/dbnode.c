/* SPDX-License-Identifier: Apache-2.0
 *
 *     dbnode DATABASE [ADDRESS:PORT]
 *
 * An application that owns a database of records and lets injected code work on it: Listing 1.3 of the 2021 paper,
 * at the target. It knows neither how records are encoded nor what is inserted where. Prints "ready ADDRESS:PORT".
 */
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <threechains/threechains.h>

/* A signal handler gets no argument, so what it needs cannot be anywhere else. */
static tc_node_t *running_node;
static volatile sig_atomic_t stop_requested;

static void request_stop(int signal) {
  (void)signal;
  stop_requested = 1;
  if (running_node != NULL) tc_node_wake(running_node);
}

static void check(tc_status_t status, const char *what) {
  if (status == TC_OK) return;
  fprintf(stderr, "dbnode: %s: %s\n", what, tc_error_message());
  exit(1);
}

static sqlite3 *open_database(const char *path) {
  sqlite3 *database;
  char *error = NULL;
  /* With a write-ahead log, an insertion does not wait for the disk. */
  if (sqlite3_open(path, &database) != SQLITE_OK ||
      sqlite3_exec(database,
                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                   "CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, title TEXT, text TEXT, words INTEGER)",
                   NULL, NULL, &error) != SQLITE_OK) {
    fprintf(stderr, "dbnode: %s: %s\n", path, error != NULL ? error : sqlite3_errmsg(database));
    exit(1);
  }
  return database;
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: dbnode DATABASE [ADDRESS:PORT]\n");
    return 2;
  }
  sqlite3 *database = open_database(argv[1]);
  tc_config_t *config;
  check(tc_config_create(&config), "configuration");
  check(tc_config_set(config, "name", "dbnode"), "name");
  check(tc_config_set(config, "listen", argc == 3 ? argv[2] : "127.0.0.1:0"), "listen");
  check(tc_config_set(config, "allow-lib", "libsqlite3.so.0"), "allow-lib");
  check(tc_node_create(config, &running_node), "starting");
  tc_config_free(config);
  tc_node_set_target_args(running_node, database);
  signal(SIGTERM, request_stop);
  signal(SIGINT, request_stop);
  printf("ready %s\n", tc_node_address(running_node));
  fflush(stdout);

  while (!stop_requested) check(tc_node_wait(running_node, 60 * 1000, NULL), "serving");

  uint64_t executed = 0, codes = 0;
  check(tc_node_stat(running_node, "executed", &executed), "executed");
  check(tc_node_stat(running_node, "codes", &codes), "codes");
  printf("stopped after %llu executions of %llu different codes\n", (unsigned long long)executed,
         (unsigned long long)codes);
  tc_node_t *node = running_node;
  running_node = NULL;
  tc_node_free(node);
  sqlite3_close(database);
  return 0;
}
