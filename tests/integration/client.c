/* SPDX-License-Identifier: Apache-2.0
 *
 * A program with a node of its own, for tests that do something to its peers meanwhile:
 *
 *     tc_test_client [KEY=VALUE...]      options of the node: tc_config_set(). It listens nowhere unless told to
 *
 * Reads commands from stdin, one a line, and answers each with one line on stdout:
 *
 *     peer NUMBER                which of its peers (0, unless told) the commands below are about: "ok"
 *     connect ADDRESS            "ok", or "error STATUS MESSAGE"
 *     close                      "ok"
 *     register FILE              "ok"
 *     deregister                 "ok"
 *     address                    "ok ADDRESS", where it listens
 *     stat NAME                  "ok VALUE", or "error STATUS MESSAGE"
 *     serve                      progresses the node from now on, in a thread: "ok", or "error STATUS MESSAGE"
 *     call DEADLINE_MS TEXT      "ok REPLY" or "error STATUS MESSAGE"
 *     flood COUNT DEADLINE_MS    makes so many calls without waiting, then waits for each answer:
 *                                "done ACCEPTED REFUSED OK TIMEOUT DISCONNECTED OTHER LATEST_MS", where LATEST_MS is how
 *                                long after its deadline the latest answer was known
 *     flood-prepare / flood-wait the two halves of flood, with "ok ACCEPTED REFUSED" in between
 *     poll MS                    progresses the node for so long: "ok"
 *     quit
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threechains/threechains.h>
#include <time.h>

enum { max_peers = 8 };

struct client {
  tc_node_t *node;
  tc_endpoint_t *endpoints[max_peers];
  size_t peer;
  tc_ifunc_t *ifunc;
  tc_future_t **futures; /* of a flood */
  double *deadlines;
  size_t accepted, refused;
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void answer(tc_status_t status, const char *message) {
  if (status == TC_OK)
    printf("ok\n");
  else
    printf("error %s: %s\n", tc_status_name(status), message);
}

static tc_message_t *message_of(struct client *c, char *text) {
  tc_message_t *message = NULL;
  if (c->ifunc == NULL || c->endpoints[c->peer] == NULL) {
    printf("error client: register and connect first\n");
    return NULL;
  }
  const tc_status_t status = tc_message_create(c->ifunc, text, strlen(text), &message);
  if (status != TC_OK) answer(status, tc_error_message());
  return message;
}

static void call(struct client *c, unsigned deadline_ms, char *text) {
  tc_message_t *message = message_of(c, text);
  if (message == NULL) return;
  tc_future_t *future = NULL;
  tc_status_t status = tc_endpoint_call(c->endpoints[c->peer], message, deadline_ms, &future);
  tc_message_free(message);
  if (status != TC_OK) {
    answer(status, tc_error_message());
    return;
  }
  status = tc_future_wait(future, deadline_ms + 1000);
  if (status == TC_OK) status = tc_future_status(future);
  if (status == TC_OK) {
    size_t size = 0;
    const char *bytes = tc_future_bytes(future, &size);
    printf("ok %.*s\n", (int)size, bytes != NULL ? bytes : "");
  } else {
    answer(status, tc_future_error(future));
  }
  tc_future_free(future);
}

static void flood_start(struct client *c, size_t count, unsigned deadline_ms) {
  char text[] = "x";
  tc_message_t *message = message_of(c, text);
  if (message == NULL) return;
  c->futures = calloc(count, sizeof *c->futures);
  c->deadlines = calloc(count, sizeof *c->deadlines);
  c->accepted = c->refused = 0;
  tc_endpoint_set_timeout(c->endpoints[c->peer], 0);
  for (size_t i = 0; i < count; ++i) {
    tc_future_t *future = NULL;
    if (tc_endpoint_call(c->endpoints[c->peer], message, deadline_ms, &future) == TC_OK) {
      c->deadlines[c->accepted] = now_ms() + deadline_ms;
      c->futures[c->accepted++] = future;
    } else {
      ++c->refused;
    }
  }
  tc_endpoint_set_timeout(c->endpoints[c->peer], 1000);
  tc_message_free(message);
}

static void flood_wait(struct client *c) {
  size_t ok = 0, timeout = 0, disconnected = 0, other = 0;
  double latest = 0;
  for (size_t i = 0; i < c->accepted; ++i) {
    const double left = c->deadlines[i] - now_ms();
    tc_status_t status = tc_future_wait(c->futures[i], (left > 0 ? (unsigned)left : 0) + 5000);
    status = status == TC_OK ? tc_future_status(c->futures[i]) : TC_ERR_BUSY;
    if (now_ms() - c->deadlines[i] > latest) latest = now_ms() - c->deadlines[i];
    ok += status == TC_OK;
    timeout += status == TC_ERR_TIMEOUT;
    disconnected += status == TC_ERR_DISCONNECTED;
    other += status != TC_OK && status != TC_ERR_TIMEOUT && status != TC_ERR_DISCONNECTED;
    tc_future_free(c->futures[i]);
  }
  printf("done %zu %zu %zu %zu %zu %zu %.0f\n", c->accepted, c->refused, ok, timeout, disconnected, other, latest);
  free(c->futures);
  free(c->deadlines);
  c->futures = NULL;
  c->deadlines = NULL;
}

static void show_stat(struct client *c, const char *name) {
  uint64_t value = 0;
  const tc_status_t status = tc_node_stat(c->node, name, &value);
  if (status == TC_OK)
    printf("ok %llu\n", (unsigned long long)value);
  else
    answer(status, tc_error_message());
}

static void obey(struct client *c, char *line) {
  char *space = strchr(line, ' ');
  char *rest = space != NULL ? space + 1 : line + strlen(line);
  if (space != NULL) *space = 0;
  if (strcmp(line, "peer") == 0) {
    c->peer = strtoul(rest, NULL, 10) % max_peers;
    printf("ok\n");
  } else if (strcmp(line, "connect") == 0) {
    answer(tc_node_connect(c->node, rest, 5000, &c->endpoints[c->peer]), tc_error_message());
  } else if (strcmp(line, "close") == 0) {
    (void)tc_endpoint_free(c->endpoints[c->peer], 1000);
    c->endpoints[c->peer] = NULL;
    printf("ok\n");
  } else if (strcmp(line, "register") == 0) {
    answer(tc_ifunc_register(c->node, rest, &c->ifunc), tc_error_message());
  } else if (strcmp(line, "deregister") == 0) {
    tc_ifunc_free(c->ifunc);
    c->ifunc = NULL;
    printf("ok\n");
  } else if (strcmp(line, "address") == 0) {
    printf("ok %s\n", tc_node_address(c->node));
  } else if (strcmp(line, "stat") == 0) {
    show_stat(c, rest);
  } else if (strcmp(line, "serve") == 0) {
    answer(tc_node_start_progress(c->node), tc_error_message());
  } else if (strcmp(line, "call") == 0) {
    char *text = NULL;
    const unsigned deadline_ms = (unsigned)strtoul(rest, &text, 10);
    call(c, deadline_ms, *text == ' ' ? text + 1 : text);
  } else if (strcmp(line, "flood") == 0 || strcmp(line, "flood-prepare") == 0) {
    char *deadline = NULL;
    const size_t count = strtoul(rest, &deadline, 10);
    flood_start(c, count, (unsigned)strtoul(deadline, NULL, 10));
    if (strcmp(line, "flood") == 0)
      flood_wait(c);
    else
      printf("ok %zu %zu\n", c->accepted, c->refused);
  } else if (strcmp(line, "flood-wait") == 0) {
    flood_wait(c);
  } else if (strcmp(line, "poll") == 0) {
    const double end = now_ms() + strtod(rest, NULL);
    while (now_ms() < end) (void)tc_node_wait(c->node, 10, NULL);
    printf("ok\n");
  } else {
    printf("error client: no such command: %s\n", line);
  }
}

static tc_status_t configure(tc_config_t *config, int count, char **settings) {
  tc_status_t status = tc_config_set(config, "listen", "none");
  if (status == TC_OK) status = tc_config_set(config, "name", "client");
  for (int i = 0; i < count && status == TC_OK; ++i) {
    char *value = strchr(settings[i], '=');
    if (value != NULL) *value++ = 0;
    status = tc_config_set(config, settings[i], value != NULL ? value : "");
  }
  return status;
}

int main(int argc, char **argv) {
  struct client c = {0};
  tc_config_t *config;
  char line[4096];
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (tc_config_create(&config) != TC_OK || configure(config, argc - 1, argv + 1) != TC_OK ||
      tc_node_create(config, &c.node) != TC_OK) {
    fprintf(stderr, "client: %s\n", tc_error_message());
    return 1;
  }
  tc_config_free(config);
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (strcmp(line, "quit") == 0) break;
    obey(&c, line);
  }
  tc_node_free(c.node);
  return 0;
}
