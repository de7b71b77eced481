/* SPDX-License-Identifier: Apache-2.0
 *
 *     node ADDRESS:PORT
 *
 * A program that has data and lets functions that are sent to it work on them. It knows nothing of these functions.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <threechains/threechains.h>

static void check(tc_status_t status, const char *what) {
  if (status == TC_OK) return;
  fprintf(stderr, "node: %s: %s\n", what, tc_error_message());
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: node ADDRESS:PORT\n");
    return 2;
  }
  static double readings[100000]; /* of a thermometer, say */
  const size_t count = sizeof readings / sizeof *readings;
  for (size_t i = 0; i < count; ++i) readings[i] = 20 + 15 * sin((double)i / 1000);

  tc_config_t *config;
  tc_node_t *node;
  check(tc_config_create(&config), "configuration");
  check(tc_config_set(config, "listen", argv[1]), "listen");
  check(tc_node_create(config, &node), "starting");
  tc_config_free(config);
  check(tc_node_expose(node, "readings", readings, sizeof readings), "readings");

  printf("ready %s\n", tc_node_address(node));
  fflush(stdout);
  for (;;) check(tc_node_wait(node, 1000, NULL), "waiting"); /* runs what comes; asleep it costs nothing */
}
