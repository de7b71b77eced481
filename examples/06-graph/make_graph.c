/* SPDX-License-Identifier: Apache-2.0
 *
 *     make_graph --scale N [--edge-factor 16] [--seed 1]
 *
 * Prints the edges of a graph with 2^N vertices, one "FROM TO" a line, for make_shards --numbered.
 */
#include <inttypes.h>
#include <stdio.h>

#include "rmat.h"

static uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most) {
  char *end;
  const uint64_t value = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && *end == 0 && value >= least && value <= most) return value;
  fprintf(stderr, "make_graph: %s is '%s' when it is a number from %" PRIu64 " to %" PRIu64 "\n", option, text, least,
          most);
  exit(2);
}

int main(int argc, char **argv) {
  uint64_t scale = 0, factor = 16, seed = 1;
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--scale") == 0)
      scale = number(argv[i], value, 1, 31);
    else if (strcmp(argv[i], "--edge-factor") == 0)
      factor = number(argv[i], value, 1, 1024);
    else if (strcmp(argv[i], "--seed") == 0)
      seed = number(argv[i], value, 0, UINT64_MAX);
    else
      scale = 0, argc = 0;
  }
  if (scale == 0) {
    fprintf(stderr, "usage: make_graph --scale N [--edge-factor 16] [--seed 1]\n");
    return 2;
  }
  for (uint64_t i = 0; i < factor << scale; ++i) {
    const struct graph_edge edge = rmat_edge(i, (uint32_t)scale, seed);
    printf("%" PRIu32 " %" PRIu32 "\n", edge.from, edge.to);
  }
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  perror("make_graph");
  return 1;
}
