/* SPDX-License-Identifier: Apache-2.0
 *
 *     sample [--servers ADDRESS,...] [--ifuncs DIRECTORY] [--shards DIRECTORY] [--hops 2] [--fan 5] [--seed 1] VERTEX
 *
 * Prints a sample of VERTEX's neighbourhood, one "HOP FROM TO" a line: one call, which travels between the servers.
 */
#include "sample.h"

#include "client.h"

static const char usage[] =
    "usage: sample [--servers ADDRESS,...] [--ifuncs DIRECTORY] [--shards DIRECTORY] [--hops 2] [--fan 5] [--seed 1] "
    "VERTEX\n";

struct request {
  struct sample_head head;
  struct sample_edge first;
};

static int compare(const void *a, const void *b) {
  const struct sample_edge *x = a, *y = b;
  if (x->hop != y->hop) return x->hop < y->hop ? -1 : 1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

/* The order in which edges were drawn depends on the way that the call took; what was drawn does not. */
static void print(const struct graph_client *client, const unsigned char *bytes, size_t size) {
  static struct sample_edge edges[sample_most_edges];
  struct sample_head head;
  if (size < sizeof head) graph_give_up("sample: an answer of %zu bytes", size);
  memcpy(&head, bytes, sizeof head);
  if (head.count > sample_most_edges || size != sizeof head + head.count * sizeof *edges)
    graph_give_up("sample: an answer of %zu bytes with %u edges", size, head.count);
  memcpy(edges, bytes + sizeof head, size - sizeof head);
  qsort(edges, head.count, sizeof *edges, compare);
  for (uint32_t i = 0; i < head.count; ++i) {
    if (edges[i].hop == 0) continue;
    if (edges[i].from >= client->search.vertices || edges[i].to >= client->search.vertices)
      graph_give_up("sample: an edge from %u to %u in a graph of %u vertices", edges[i].from, edges[i].to,
                    client->search.vertices);
    printf("%u ", edges[i].hop);
    graph_print_vertex(stdout, client, edges[i].from);
    putchar(' ');
    graph_print_vertex(stdout, client, edges[i].to);
    putchar('\n');
  }
}

int main(int argc, char **argv) {
  const char *servers = getenv("TC_CLUSTER_ADDRESSES"), *ifuncs = ".", *shards = NULL;
  struct request request = {{1, 2, 5, 1, 0}, {0, 0, 0, 0}};
  int at = 1;
  for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
    const char *value = argv[at + 1];
    if (strcmp(argv[at], "--servers") == 0)
      servers = value;
    else if (strcmp(argv[at], "--ifuncs") == 0)
      ifuncs = value;
    else if (strcmp(argv[at], "--shards") == 0)
      shards = value;
    else if (strcmp(argv[at], "--hops") == 0 && atoi(value) > 0 && atoi(value) <= sample_most_hops)
      request.head.hops = (uint32_t)atoi(value);
    else if (strcmp(argv[at], "--fan") == 0 && atoi(value) > 0)
      request.head.fan = (uint32_t)atoi(value);
    else if (strcmp(argv[at], "--seed") == 0)
      request.head.seed = strtoull(value, NULL, 10);
    else
      break;
  }
  if (argc - at != 1 || strncmp(argv[at], "--", 2) == 0) {
    fputs(usage, stderr);
    return 2;
  }
  struct graph_client client;
  memset(&client, 0, sizeof client);
  client.program = "sample";
  client.search.deadline_ms = 10000;
  graph_connect(&client, servers);
  graph_ask_shards(&client, ifuncs);
  if (shards != NULL) graph_read_names(&client, shards);
  request.first.to = graph_find_vertex(&client, argv[at]);
  size_t size = 0;
  tc_future_t *future = graph_call(&client, graph_owner(request.first.to, client.search.servers),
                                   graph_ifunc(&client, ifuncs, "sample_step"), &request, sizeof request);
  const unsigned char *bytes = tc_future_bytes(future, &size);
  print(&client, bytes, size);
  tc_future_free(future);
  tc_node_free(client.search.node);
  return 0;
}
