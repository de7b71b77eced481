/* SPDX-License-Identifier: Apache-2.0
 *
 *     make_shards [--skip-lines N] [--numbered [--vertices N]] [--undirected] EDGES SHARDS DIRECTORY
 *
 * Cuts a graph into SHARDS files DIRECTORY/0.shard, 1.shard, ...; vertices get numbers in the order in which EDGES
 * names them, and DIRECTORY/names holds their names, one a line. Prints what a server needs to search it.
 */
#include <sys/stat.h>

#include "bfs.h"
#include "edge_list.h"

static const char usage[] =
    "usage: make_shards [--skip-lines N] [--numbered [--vertices N]] [--undirected] EDGES SHARDS DIRECTORY\n";

static FILE *create(const char *directory, const char *name) {
  char path[4096];
  FILE *file = NULL;
  if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) < sizeof path) file = fopen(path, "wb");
  if (file != NULL) return file;
  fprintf(stderr, "make_shards: %s/%s: %s\n", directory, name, strerror(errno));
  exit(1);
}

static void finish(FILE *file, const char *directory) {
  const int failed = ferror(file);
  if (fclose(file) == 0 && !failed) return;
  fprintf(stderr, "make_shards: cannot write to %s: %s\n", directory, strerror(errno));
  exit(1);
}

static void write_shards(const struct edge_list *list, uint32_t shards, const char *directory) {
  for (uint32_t i = 0; i < shards; ++i) {
    uint64_t bytes;
    struct graph_shard *shard = graph_make_shard(list->edges, list->count, list->vertices, i, shards, &bytes);
    if (shard == NULL) {
      fprintf(stderr, "make_shards: no memory for a shard of %" PRIu64 " bytes\n", bytes);
      exit(1);
    }
    char name[32];
    snprintf(name, sizeof name, "%u.shard", i);
    FILE *file = create(directory, name);
    fwrite(shard, 1, bytes, file);
    finish(file, directory);
    free(shard);
  }
}

static void write_names(const struct edge_list *list, const char *directory) {
  FILE *file = create(directory, "names");
  for (uint32_t i = 0; i < list->vertices; ++i) fprintf(file, "%s\n", list->names[i]);
  finish(file, directory);
}

static unsigned long number(const char *text) {
  char *end;
  const unsigned long value = text == NULL || *text < '0' || *text > '9' ? 0 : strtoul(text, &end, 10);
  if (value != 0 && *end == 0 && value < GRAPH_MOST_VERTICES) return value;
  fprintf(stderr, "make_shards: '%s' when it is a whole number above 0\n%s", text == NULL ? "" : text, usage);
  exit(2);
}

int main(int argc, char **argv) {
  struct edge_list_options options;
  memset(&options, 0, sizeof options);
  options.program = "make_shards";
  int at = 1;
  for (; at < argc && strncmp(argv[at], "--", 2) == 0; ++at) {
    if (strcmp(argv[at], "--skip-lines") == 0)
      options.skip_lines = (unsigned)number(argv[++at]);
    else if (strcmp(argv[at], "--vertices") == 0)
      options.vertices = (uint32_t)number(argv[++at]);
    else if (strcmp(argv[at], "--numbered") == 0)
      options.numbered = 1;
    else if (strcmp(argv[at], "--undirected") == 0)
      options.undirected = 1;
    else
      at = argc;
  }
  if (argc - at != 3 || (options.vertices != 0 && !options.numbered)) {
    fputs(usage, stderr);
    return 2;
  }
  const unsigned long shards = number(argv[at + 1]);
  if (shards > GRAPH_MOST_SHARDS) {
    fprintf(stderr, "make_shards: %lu shards when at most %u can be\n", shards, GRAPH_MOST_SHARDS);
    return 2;
  }
  const char *directory = argv[at + 2];
  if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
    fprintf(stderr, "make_shards: %s: %s\n", directory, strerror(errno));
    return 1;
  }
  struct edge_list list = edge_list_read(argv[at], &options);
  if (list.vertices == 0) {
    fprintf(stderr, "make_shards: %s has no edges\n", argv[at]);
    return 1;
  }
  write_shards(&list, (uint32_t)shards, directory);
  if (!options.numbered) write_names(&list, directory);
  printf("vertices %" PRIu32 "\nedges %" PRIu64 "\nscratch %" PRIu64 "\n", list.vertices, list.count,
         bfs_slot_bytes(list.vertices, (uint32_t)shards));
  edge_list_free(&list);
  return 0;
}
