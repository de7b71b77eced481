/* SPDX-License-Identifier: Apache-2.0
 *
 * What the example's two drivers share: finding the servers, their code, and the vertices' names.
 */
#ifndef THREECHAINS_EXAMPLE_CLIENT_H
#define THREECHAINS_EXAMPLE_CLIENT_H

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "search.h"

struct graph_client {
  const char* program;
  struct bfs_client search;
  char** names; /* of the vertices; NULL: they are numbers */
};

__attribute__((format(printf, 1, 2), noreturn)) static inline void graph_give_up(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

static inline void graph_check(const struct graph_client* client, tc_status_t status, const char* what) {
  if (status != TC_OK) graph_give_up("%s: %s: %s", client->program, what, tc_error_message());
}

static inline tc_ifunc_t* graph_ifunc(const struct graph_client* client, const char* directory, const char* name) {
  char path[4096];
  tc_ifunc_t* ifunc = NULL;
  snprintf(path, sizeof path, "%s/%s.ifunc", directory, name);
  graph_check(client, tc_ifunc_register(client->search.node, path, &ifunc), "registering an ifunc");
  return ifunc;
}

/* One call, and its answer, which the caller frees. */
static inline tc_future_t* graph_call(const struct graph_client* client, uint32_t server, tc_ifunc_t* ifunc,
                                      void* payload, size_t size) {
  tc_message_t* message = NULL;
  tc_future_t* future = NULL;
  graph_check(client, tc_message_create(ifunc, payload, size, &message), "making a message");
  graph_check(client, tc_endpoint_call(client->search.endpoints[server], message, client->search.deadline_ms, &future),
              "calling a server");
  tc_message_free(message);
  if (tc_future_wait(future, client->search.deadline_ms + 1000) != TC_OK || tc_future_status(future) != TC_OK)
    graph_give_up("%s: server %u (%s): %s", client->program, server, tc_endpoint_peer(client->search.endpoints[server]),
                  tc_error_message());
  return future;
}

static inline void graph_connect(struct graph_client* client, const char* addresses) {
  char list[4096];
  if (addresses == NULL || (size_t)snprintf(list, sizeof list, "%s", addresses) >= sizeof list)
    graph_give_up("%s: no servers: give --servers ADDRESS,..., or run under `ifunc cluster`", client->program);
  tc_config_t* config = NULL;
  graph_check(client, tc_config_create(&config), "configuration");
  graph_check(client, tc_config_set(config, "name", client->program), "name");
  /* A step sends one batch to each other server, and each of its calls halves what is left of the fan-out. */
  graph_check(client, tc_config_set(config, "fan-out", "65535"), "fan-out");
  graph_check(client, tc_node_create(config, &client->search.node), "starting");
  tc_config_free(config);
  for (char* address = strtok(list, ","); address != NULL; address = strtok(NULL, ",")) {
    if (client->search.servers == BFS_MOST_SERVERS)
      graph_give_up("%s: at most %u servers can search together", client->program, BFS_MOST_SERVERS);
    graph_check(
        client,
        tc_node_connect(client->search.node, address, 10000, &client->search.endpoints[client->search.servers++]),
        address);
  }
}

/* Asks every server for its shard: they must be the parts of one graph, in the order of the servers. */
static inline void graph_ask_shards(struct graph_client* client, const char* directory) {
  tc_ifunc_t* info = graph_ifunc(client, directory, "graph_info");
  uint64_t edges = 0;
  for (uint32_t i = 0; i < client->search.servers; ++i) {
    struct graph_shard shard;
    size_t size = 0;
    tc_future_t* future = graph_call(client, i, info, NULL, 0);
    const void* bytes = tc_future_bytes(future, &size);
    if (size != sizeof shard) graph_give_up("%s: server %u does not answer with a shard", client->program, i);
    memcpy(&shard, bytes, sizeof shard);
    tc_future_free(future);
    if (i == 0) client->search.vertices = shard.vertices, edges = shard.edges;
    if (shard.shard != i || shard.shards != client->search.servers || shard.vertices != client->search.vertices ||
        shard.edges != edges)
      graph_give_up("%s: server %u of %u holds shard %u of %u of a graph with %u vertices and %" PRIu64
                    " edges, when server 0's has %u and %" PRIu64,
                    client->program, i, client->search.servers, shard.shard, shard.shards, shard.vertices, shard.edges,
                    client->search.vertices, edges);
  }
}

/* The file that make_shards wrote; a numbered graph has none. */
static inline void graph_read_names(struct graph_client* client, const char* shards) {
  char path[4096], line[1024];
  snprintf(path, sizeof path, "%s/names", shards);
  FILE* file = fopen(path, "rb");
  if (file == NULL) return;
  client->names = calloc(client->search.vertices, sizeof *client->names);
  uint32_t count = 0;
  while (client->names != NULL && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (count < client->search.vertices) client->names[count] = strdup(line);
    ++count;
  }
  fclose(file);
  if (count != client->search.vertices)
    graph_give_up("%s: %s has %u names when the servers' graph has %u vertices", client->program, path, count,
                  client->search.vertices);
}

static inline uint32_t graph_find_vertex(const struct graph_client* client, const char* text) {
  for (uint32_t i = 0; client->names != NULL && i < client->search.vertices; ++i)
    if (strcmp(client->names[i], text) == 0) return i;
  if (client->names != NULL)
    graph_give_up("%s: no vertex of the %u is called '%s'", client->program, client->search.vertices, text);
  char* end = NULL;
  const unsigned long long number = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != 0)
    graph_give_up("%s: '%s' is not a vertex's number, and names are known with --shards DIRECTORY only",
                  client->program, text);
  if (number >= client->search.vertices)
    graph_give_up("%s: there is no vertex %s: the graph has %u, and the first is 0", client->program, text,
                  client->search.vertices);
  return (uint32_t)number;
}

static inline void graph_print_vertex(FILE* file, const struct graph_client* client, uint32_t vertex) {
  if (client->names != NULL)
    fputs(client->names[vertex], file);
  else
    fprintf(file, "%u", vertex);
}

#endif
