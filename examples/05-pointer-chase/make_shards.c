// SPDX-License-Identifier: Apache-2.0
//
// make_shards SERVERS ENTRIES SEED DIRECTORY: writes shard0.bin, shard1.bin, ... of the chase's table.
// make_shards SERVERS ENTRIES SEED --walk ADDRESS DEPTH: prints where that chase must end, as the Chaser answers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chase.h"

static int write_shard(const char *directory, uint64_t index, const uint64_t *entries, uint64_t count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/shard%llu.bin", directory, (unsigned long long)index);
  FILE *const file = fopen(path, "wb");
  const int written = file != NULL && fwrite(entries, sizeof *entries, count, file) == count;
  if (file != NULL && fclose(file) == 0 && written) return 0;
  perror(path);
  return 1;
}

int main(int argc, char **argv) {
  const uint64_t servers = argc > 4 ? strtoull(argv[1], NULL, 10) : 0;
  const uint64_t entries = argc > 4 ? strtoull(argv[2], NULL, 10) : 0;
  const int walk = argc == 7 && strcmp(argv[4], "--walk") == 0;
  if ((argc != 5 && !walk) || servers == 0 || servers > 256 || entries == 0 || entries > 1u << 24) {
    fprintf(stderr, "usage: make_shards SERVERS ENTRIES SEED DIRECTORY | --walk ADDRESS DEPTH\n");
    return 2;
  }
  const uint64_t all = servers * entries;
  uint64_t *const table = malloc(all * sizeof *table);
  if (table == NULL) return 1;
  chase_fill(table, all, strtoull(argv[3], NULL, 10));
  int failed = 0;
  if (walk) {
    const uint64_t end = chase_walk(table, strtoull(argv[5], NULL, 10) % all, (uint32_t)strtoul(argv[6], NULL, 10));
    for (int byte = 0; byte < 8; ++byte) printf("%02x", (unsigned)(end >> (8 * byte) & 0xff));
    printf("\n");
  } else {
    for (uint64_t i = 0; i < servers && !failed; ++i) failed = write_shard(argv[4], i, table + i * entries, entries);
  }
  free(table);
  return failed;
}
