/* SPDX-License-Identifier: Apache-2.0
 *
 *     bfs [--servers ADDRESS,...] [--ifuncs DIRECTORY] [--shards DIRECTORY] [--levels FILE] [--deadline MS] SOURCE
 *
 * Breadth-first search from vertex SOURCE over the servers of a sharded graph, which need nothing but their shards: the
 * code travels from here. With --shards, vertices have their names, and the answer is checked against the shard files.
 */
#include <inttypes.h>
#include <time.h>

#include "client.h"

struct options {
  const char *servers, *ifuncs, *shards, *levels, *source;
};

struct totals {
  struct bfs_level sum;
  uint32_t levels;
};

static const char usage[] =
    "usage: bfs [--servers ADDRESS,...] [--ifuncs DIRECTORY] [--shards DIRECTORY] [--levels FILE] [--deadline MS] "
    "SOURCE\n";

static void on_level(void *arg, const struct bfs_level *level) {
  struct totals *totals = arg;
  printf("  level %u: %" PRIu64 " vertices, %" PRIu64 " edges looked at; %" PRIu64 " vertices sent on in %u batches\n",
         level->level, level->vertices, level->edges, level->sent, level->batches);
  totals->sum.vertices += level->vertices;
  totals->sum.edges += level->edges;
  totals->sum.sent += level->sent;
  totals->sum.batches += level->batches;
  totals->sum.steps += level->steps;
  totals->sum.asked_again += level->asked_again;
  totals->levels = level->level + 1;
}

/* The levels of all vertices, by number, from the servers. */
static uint32_t *read_levels(const struct graph_client *client, tc_ifunc_t *read) {
  enum { rows_at_once = 1 << 18 };
  const uint32_t servers = client->search.servers, vertices = client->search.vertices;
  uint32_t *levels = malloc(vertices * sizeof *levels);
  if (levels == NULL) graph_give_up("bfs: no memory for %u levels", vertices);
  memset(levels, 0xff, vertices * sizeof *levels);
  for (uint32_t server = 0; server < servers; ++server) {
    const uint32_t rows = graph_rows(vertices, server, servers);
    for (uint32_t first = 0; first < rows; first += rows_at_once) {
      const uint32_t count = rows - first < rows_at_once ? rows - first : rows_at_once;
      struct bfs_range range = {client->search.query, client->search.slot, first, count, 0};
      size_t size = 0;
      tc_future_t *future = graph_call(client, server, read, &range, sizeof range);
      const uint32_t *part = tc_future_bytes(future, &size);
      if (size != 0 && size != count * sizeof *part)
        graph_give_up("bfs: server %u answers with %zu bytes of levels when %zu are due", server, size,
                      count * sizeof *part);
      for (uint32_t i = 0; size != 0 && i < count; ++i) levels[graph_vertex(server, first + i, servers)] = part[i];
      tc_future_free(future);
    }
  }
  return levels;
}

static struct graph_shard *read_shard(const char *directory, uint32_t index) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%u.shard", directory, index);
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) graph_give_up("bfs: %s: %s", path, strerror(errno));
  const size_t size = (size_t)ftell(file);
  rewind(file);
  struct graph_shard *shard = malloc(size + sizeof *shard);
  if (shard == NULL || fread(shard, 1, size, file) != size || !graph_is_shard(shard, size))
    graph_give_up("bfs: %s is not a whole shard", path);
  fclose(file);
  return shard;
}

/* Looks at every edge. Levels are right when the source alone has level 0, no edge leads from a level to one that is
 * two or more above it (or to a vertex that was not reached), and every other vertex that was reached has an edge from
 * the level below. */
static void check_levels(const struct graph_client *client, const uint32_t *levels, uint32_t source,
                         const char *directory) {
  const uint32_t servers = client->search.servers, vertices = client->search.vertices;
  unsigned char *has_parent = calloc(vertices, 1);
  if (has_parent == NULL) graph_give_up("bfs: no memory to check %u vertices", vertices);
  has_parent[source] = 1;
  for (uint32_t part = 0; part < servers; ++part) {
    struct graph_shard *shard = read_shard(directory, part);
    if (shard->vertices != vertices || shard->shard != part || shard->shards != servers)
      graph_give_up("bfs: %s/%u.shard is not of the servers' graph", directory, part);
    for (uint32_t row = 0; row < shard->rows; ++row) {
      const uint32_t from = graph_vertex(part, row, servers), level = levels[from];
      if (level == BFS_UNREACHED) continue;
      for (uint64_t i = graph_offsets(shard)[row]; i < graph_offsets(shard)[row + 1]; ++i) {
        const uint32_t to = graph_neighbours(shard)[i];
        if (levels[to] > level + 1)
          graph_give_up("bfs: WRONG: an edge leads from vertex %u, level %u, to vertex %u, level %u", from, level, to,
                        levels[to]);
        if (levels[to] == level + 1) has_parent[to] = 1;
      }
    }
    free(shard);
  }
  for (uint32_t v = 0; v < vertices; ++v)
    if (levels[v] != BFS_UNREACHED && (!has_parent[v] || (levels[v] == 0) != (v == source)))
      graph_give_up("bfs: WRONG: nothing leads to vertex %u on level %u", v, levels[v]);
  free(has_parent);
  printf("checked: every edge agrees with the levels\n");
}

static void write_levels(const struct graph_client *client, const uint32_t *levels, const char *path) {
  FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
  if (file == NULL) graph_give_up("bfs: %s: %s", path, strerror(errno));
  for (uint32_t v = 0; v < client->search.vertices; ++v) {
    if (levels[v] == BFS_UNREACHED) continue;
    graph_print_vertex(file, client, v);
    fprintf(file, " %u\n", levels[v]);
  }
  if (fflush(file) != 0 || ferror(file)) graph_give_up("bfs: %s: %s", path, strerror(errno));
  if (file != stdout) fclose(file);
}

static struct options parse(int argc, char **argv, uint32_t *deadline_ms) {
  struct options options = {getenv("TC_CLUSTER_ADDRESSES"), ".", NULL, NULL, NULL};
  int at = 1;
  for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
    const char *value = argv[at + 1];
    if (strcmp(argv[at], "--servers") == 0)
      options.servers = value;
    else if (strcmp(argv[at], "--ifuncs") == 0)
      options.ifuncs = value;
    else if (strcmp(argv[at], "--shards") == 0)
      options.shards = value;
    else if (strcmp(argv[at], "--levels") == 0)
      options.levels = value;
    else if (strcmp(argv[at], "--deadline") == 0 && atol(value) > 0)
      *deadline_ms = (uint32_t)atol(value);
    else
      break;
  }
  if (argc - at == 1 && strncmp(argv[at], "--", 2) != 0) {
    options.source = argv[at];
    return options;
  }
  fputs(usage, stderr);
  exit(2);
}

int main(int argc, char **argv) {
  struct graph_client client;
  memset(&client, 0, sizeof client);
  client.program = "bfs";
  client.search.deadline_ms = 60000;
  const struct options options = parse(argc, argv, &client.search.deadline_ms);
  graph_connect(&client, options.servers);
  graph_ask_shards(&client, options.ifuncs);
  if (options.shards != NULL) graph_read_names(&client, options.shards);
  const uint32_t source = graph_find_vertex(&client, options.source);
  client.search.step = graph_ifunc(&client, options.ifuncs, "bfs_step");

  printf("searching %u vertices on %u servers from %s\n", client.search.vertices, client.search.servers,
         options.source);
  struct totals totals;
  memset(&totals, 0, sizeof totals);
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (bfs_search(&client.search, source, on_level, &totals) != TC_OK) graph_give_up("bfs: %s", client.search.error);
  clock_gettime(CLOCK_MONOTONIC, &end);
  /* The source is on level 0 and was not found by the search: a vertex without edges has no answer, not one of one. */
  printf("%" PRIu64 " vertices reached from it on %u levels, %" PRIu64
         " edges, %.2f ms; %u calls of ours, %u of them again, "
         "%u batches between servers\n",
         totals.sum.vertices - 1, totals.levels - 1, totals.sum.edges,
         (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) / 1e6,
         totals.sum.steps + totals.sum.asked_again, totals.sum.asked_again, totals.sum.batches);

  uint32_t *levels = read_levels(&client, graph_ifunc(&client, options.ifuncs, "bfs_read"));
  if (options.shards != NULL) check_levels(&client, levels, source, options.shards);
  if (options.levels != NULL) write_levels(&client, levels, options.levels);
  free(levels);
  tc_node_free(client.search.node);
  return 0;
}
