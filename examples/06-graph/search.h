/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's part of the search: asks for one level after the other, and adds up what comes back. For bfs.c and the
 * benchmark.
 */
#ifndef THREECHAINS_EXAMPLE_SEARCH_H
#define THREECHAINS_EXAMPLE_SEARCH_H

#include <stdio.h>
#include <string.h>
#include <threechains/threechains.h>
#include <time.h>

#include "bfs.h"

struct bfs_client {
  tc_node_t* node;
  tc_endpoint_t* endpoints[BFS_MOST_SERVERS]; /* server I, which holds shard I, at place I */
  uint32_t servers;
  uint32_t vertices; /* of the graph */
  tc_ifunc_t* step;
  uint32_t slot;        /* where the servers keep this search; one search at a time in each */
  uint32_t deadline_ms; /* for a whole search */
  uint64_t query;       /* the last search's number */
  char error[600];      /* why a search failed */
};

struct bfs_level {
  uint32_t level;
  uint32_t steps;       /* servers that had something to do */
  uint32_t asked_again; /* times that a server still waited for batches */
  uint32_t batches;     /* sent from server to server */
  uint64_t vertices;    /* on this level */
  uint64_t edges;       /* looked at, from them */
  uint64_t sent;        /* vertices in the batches */
};

typedef void (*bfs_on_level)(void* arg, const struct bfs_level* level);

/* The work of one level: what each server is to do, and what it said. */
struct bfs_round {
  struct bfs_level sum;
  uint32_t batches[BFS_MOST_SERVERS];  /* sent to it, of this level */
  uint32_t has_work[BFS_MOST_SERVERS]; /* for this level */
  uint32_t next_batches[BFS_MOST_SERVERS];
  uint32_t next_work[BFS_MOST_SERVERS];
  tc_future_t* futures[BFS_MOST_SERVERS];
};

static inline uint64_t bfs_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Later searches have larger numbers, also those of other clients: by the time of day. */
static inline uint64_t bfs_new_query(uint64_t last) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  const uint64_t now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
  return now > last ? now : last + 1;
}

static inline tc_status_t bfs_ask(struct bfs_client* client, struct bfs_round* round, uint32_t server,
                                  const uint32_t* source, uint32_t left_ms) {
  struct {
    struct bfs_message head;
    uint32_t row;
  } step;
  memset(&step, 0, sizeof step);
  step.head.query = client->query;
  step.head.kind = BFS_STEP;
  step.head.slot = client->slot;
  step.head.level = round->sum.level;
  step.head.batches = round->batches[server];
  step.head.count = source != NULL;
  if (source != NULL) step.row = graph_row(*source, client->servers);
  tc_message_t* message = NULL;
  tc_status_t status =
      tc_message_create(client->step, &step, sizeof step.head + step.head.count * sizeof step.row, &message);
  if (status == TC_OK) status = tc_endpoint_call(client->endpoints[server], message, left_ms, &round->futures[server]);
  if (status != TC_OK)
    snprintf(client->error, sizeof client->error, "server %u, level %u: %s", server, round->sum.level,
             tc_error_message());
  tc_message_free(message);
  return status;
}

/* Adds a server's answer up. TC_ERR_BUSY: it waits for batches that are on their way. */
static inline tc_status_t bfs_add(struct bfs_client* client, struct bfs_round* round, uint32_t server) {
  struct bfs_answer answer;
  uint32_t sent[BFS_MOST_SERVERS];
  size_t size = 0;
  const unsigned char* bytes = (const unsigned char*)tc_future_bytes(round->futures[server], &size);
  const size_t sent_bytes = client->servers * sizeof(uint32_t);
  if (size != sizeof answer + sent_bytes) {
    snprintf(client->error, sizeof client->error, "server %u, level %u: an answer of %zu bytes when %zu are due",
             server, round->sum.level, size, sizeof answer + sent_bytes);
    return TC_ERR_MALFORMED;
  }
  memcpy(&answer, bytes, sizeof answer);
  memcpy(sent, bytes + sizeof answer, sent_bytes);
  if (answer.waiting) return TC_ERR_BUSY;
  ++round->sum.steps;
  round->sum.vertices += answer.expanded;
  round->sum.edges += answer.edges;
  if (answer.found != 0) round->next_work[server] = 1;
  for (uint32_t to = 0; to < client->servers; ++to) {
    if (sent[to] == 0) continue;
    round->sum.sent += sent[to];
    ++round->sum.batches;
    ++round->next_batches[to];
    round->next_work[to] = 1;
  }
  return TC_OK;
}

static inline tc_status_t bfs_wait(struct bfs_client* client, struct bfs_round* round, uint32_t server,
                                   uint32_t left_ms) {
  tc_status_t status = tc_future_wait(round->futures[server], left_ms);
  if (status == TC_OK) status = tc_future_status(round->futures[server]);
  if (status != TC_OK) {
    const char* why = tc_future_error(round->futures[server]);
    snprintf(client->error, sizeof client->error, "server %u (%s), level %u: %s", server,
             tc_endpoint_peer(client->endpoints[server]), round->sum.level,
             *why != 0 ? why : "no answer within the search's deadline");
  } else {
    status = bfs_add(client, round, server);
  }
  tc_future_free(round->futures[server]);
  round->futures[server] = NULL;
  return status == TC_ERR_BUSY ? TC_OK : status;
}

static inline uint32_t bfs_left_ms(uint64_t end) {
  const uint64_t now = bfs_now_ms();
  return now < end ? (uint32_t)(end - now) : 0;
}

/* One level: all servers that have something to do are asked at once; those that wait for batches are asked again. */
static inline tc_status_t bfs_run_level(struct bfs_client* client, struct bfs_round* round, const uint32_t* source,
                                        uint64_t end) {
  tc_status_t status = TC_OK;
  for (uint32_t turn = 0; status == TC_OK; ++turn) {
    uint32_t asked = 0;
    const uint32_t done = round->sum.steps;
    for (uint32_t i = 0; i < client->servers && status == TC_OK; ++i)
      if (round->has_work[i] == 1) {
        const uint32_t left = bfs_left_ms(end);
        if (left == 0) {
          snprintf(client->error, sizeof client->error,
                   "server %u, level %u: batches for it are still missing at the search's deadline", i,
                   round->sum.level);
          status = TC_ERR_TIMEOUT;
          break;
        }
        ++asked;
        status = bfs_ask(client, round, i, source, left);
      }
    for (uint32_t i = 0; i < client->servers; ++i) {
      if (round->futures[i] == NULL) continue;
      if (status != TC_OK) { /* one failed: nobody waits for the others */
        tc_future_free(round->futures[i]);
        round->futures[i] = NULL;
        continue;
      }
      const uint32_t before = round->sum.steps;
      status = bfs_wait(client, round, i, bfs_left_ms(end) + 1);
      if (round->sum.steps != before) round->has_work[i] = 0;
    }
    const uint32_t waiting = asked - (round->sum.steps - done);
    if (status != TC_OK || waiting == 0) break;
    round->sum.asked_again += waiting;
    if (turn >= 8) status = tc_node_wait(client->node, 1, NULL);
  }
  return status;
}

/* Finds the level of every vertex that can be reached from `source`, and leaves it at the servers. `on_level` (may be
 * NULL) hears of each level. Otherwise than TC_OK: client->error says why. */
static inline tc_status_t bfs_search(struct bfs_client* client, uint32_t source, bfs_on_level on_level, void* arg) {
  const uint64_t end = bfs_now_ms() + client->deadline_ms;
  struct bfs_round round;
  memset(&round, 0, sizeof round);
  client->query = bfs_new_query(client->query);
  client->error[0] = 0;
  round.has_work[graph_owner(source, client->servers)] = 1;
  for (uint32_t more = 1; more != 0;) {
    const tc_status_t status = bfs_run_level(client, &round, round.sum.level == 0 ? &source : NULL, end);
    if (status != TC_OK) return status;
    if (on_level != NULL && round.sum.vertices != 0) on_level(arg, &round.sum);
    more = 0;
    for (uint32_t i = 0; i < client->servers; ++i) more |= round.next_work[i];
    memcpy(round.batches, round.next_batches, sizeof round.batches);
    memcpy(round.has_work, round.next_work, sizeof round.has_work);
    memset(round.next_batches, 0, sizeof round.next_batches);
    memset(round.next_work, 0, sizeof round.next_work);
    const uint32_t level = round.sum.level + 1;
    memset(&round.sum, 0, sizeof round.sum);
    round.sum.level = level;
  }
  return TC_OK;
}

#endif
