/* SPDX-License-Identifier: Apache-2.0
 *
 * One node of a cluster, for tests of how clusters come together. All members run this program:
 *
 *     tc_test_member IFUNC_DIRECTORY [KEY=VALUE...]      options of the node: tc_config_set()
 *
 * Node 0 asks every node for its number and their count (ifunc `whoami`), sends a token round all of them (`hop`), and
 * ends the others (`count`). Node 0 prints "member 0 reached ID by TRANSPORT" for each of them, and each node "member ID of
 * COUNT: LINKS links" at the end; exit code 0 when all was right.
 * At most 10 nodes, as the ifuncs count in digits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threechains/threechains.h>

enum { patience_ms = 20000 };

static int complain(const char *what) {
  fprintf(stderr, "member: %s: %s\n", what, tc_error_message());
  return 1;
}

/* Calls an ifunc at a node and compares its answer, unless any will do (NULL). */
static int expect(tc_node_t *node, tc_endpoint_t *endpoint, const char *name, char *payload, const char *answer) {
  tc_ifunc_t *ifunc = NULL;
  tc_message_t *message = NULL;
  tc_future_t *future = NULL;
  if (tc_ifunc_register(node, name, &ifunc) != TC_OK) return complain(name);
  if (tc_message_create(ifunc, payload, strlen(payload), &message) != TC_OK) return complain(name);
  if (tc_endpoint_call(endpoint, message, patience_ms, &future) != TC_OK) return complain(name);
  tc_message_free(message);
  if (tc_future_wait(future, patience_ms) != TC_OK || tc_future_status(future) != TC_OK) {
    fprintf(stderr, "member: %s failed: %s\n", name, tc_error_message());
    return 1;
  }
  size_t size = 0;
  const char *bytes = tc_future_bytes(future, &size);
  const int same = answer == NULL || (size == strlen(answer) && (size == 0 || memcmp(bytes, answer, size) == 0));
  if (!same) fprintf(stderr, "member: %s answered '%.*s', not '%s'\n", name, (int)size, bytes, answer);
  tc_future_free(future);
  return same ? 0 : 1;
}

static int lead(tc_node_t *node) {
  const uint32_t count = tc_node_count(node);
  tc_endpoint_t *endpoints[10] = {0};
  char nothing[] = "", answer[32], route[16] = "";
  for (uint32_t n = 1; n < count; ++n) {
    if (tc_node_connect(node, tc_node_peer_address(node, n), patience_ms, &endpoints[n]) != TC_OK)
      return complain(tc_node_peer_address(node, n));
    printf("member 0 reached %u by %s\n", n, tc_endpoint_transport(endpoints[n]));
    if (tc_endpoint_peer_id(endpoints[n]) != n) return complain("a node has another number than its address");
    snprintf(answer, sizeof answer, "%u of %u", n, count);
    if (expect(node, endpoints[n], "whoami", nothing, answer) != 0) return 1;
    if (n > 1) route[n - 2] = (char)('0' + n);
  }
  if (count > 1) {
    strcat(route, "0"); /* and home */
    if (expect(node, endpoints[1], "hop", route, "0") != 0) return 1;
  }
  for (uint32_t n = 1; n < count; ++n)
    if (expect(node, endpoints[n], "count", nothing, NULL) != 0) return 1;
  return 0;
}

static int follow(tc_node_t *node, const volatile uint64_t *ended) {
  for (int waited = 0; *ended == 0 && waited < patience_ms; waited += 10)
    if (tc_node_wait(node, 10, NULL) != TC_OK) return complain("waiting");
  if (*ended != 0) return 0;
  fprintf(stderr, "member: node %u was never told to end\n", tc_node_id(node));
  return 1;
}

int main(int count, char **arguments) {
  static uint64_t counter;
  tc_config_t *config = NULL;
  tc_node_t *node = NULL;
  if (count < 2 || tc_config_create(&config) != TC_OK) return complain("usage: IFUNC_DIRECTORY [KEY=VALUE...]");
  if (tc_config_set(config, "path", arguments[1]) != TC_OK) return complain("path");
  for (int i = 2; i < count; ++i) {
    char *value = strchr(arguments[i], '=');
    if (value == NULL) return complain(arguments[i]);
    *value++ = 0;
    if (tc_config_set(config, arguments[i], value) != TC_OK) return complain(arguments[i]);
  }
  if (tc_node_create(config, &node) != TC_OK) return complain("no node");
  tc_config_free(config);
  uint64_t links = 0;
  if (tc_node_stat(node, "links", &links) != TC_OK || links != 0) return complain("there are links from the start");
  if (strcmp(tc_node_peer_address(node, tc_node_id(node)), tc_node_address(node)) != 0 ||
      *tc_node_peer_address(node, tc_node_count(node)) != 0)
    return complain("the list of addresses is wrong");
  if (tc_node_expose(node, "counter", &counter, sizeof counter) != TC_OK) return complain("expose");
  const int failed = tc_node_id(node) == 0 ? lead(node) : follow(node, &counter);
  if (tc_node_stat(node, "links", &links) != TC_OK) return complain("links");
  printf("member %u of %u: %u links\n", tc_node_id(node), tc_node_count(node), (unsigned)links);
  tc_node_free(node);
  return failed;
}
