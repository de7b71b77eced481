/* SPDX-License-Identifier: Apache-2.0
 *
 *     feeder ADDRESS:PORT CORPUS FIRST.ifunc CHANGED.ifunc [RECORDS]
 *
 * Listing 1.3 of the 2021 paper, at the source: sends each paragraph of CORPUS as one message, the first half with the
 * first version of the ifunc `insert`, the second half with the changed one, to a node that keeps running.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threechains/threechains.h>
#include <time.h>
#include <zstd.h>

struct record {
  char *text;
  size_t size;
};

struct corpus {
  char *bytes;
  struct record *records;
  size_t count;
};

/* One version's share of the work. */
struct totals {
  size_t records;
  unsigned long long text_bytes, payload_bytes;
  double first_ms, second_ms, rest_s;
  unsigned long long first_payload, first_code, all_code; /* bytes */
};

static void check(tc_status_t status, const char *what) {
  if (status == TC_OK) return;
  fprintf(stderr, "feeder: %s: %s\n", what, tc_error_message());
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned long long code_bytes_sent(tc_node_t *node) {
  uint64_t value = 0;
  check(tc_node_stat(node, "code-bytes-sent", &value), "counting");
  return value;
}

static void fail(const char *path) {
  perror(path);
  exit(1);
}

/* Cuts the file where an empty line is. */
static struct corpus read_corpus(const char *path, size_t most) {
  struct corpus corpus = {NULL, NULL, 0};
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(path);
  const long size = ftell(file);
  rewind(file);
  corpus.bytes = malloc((size_t)size + 1);
  corpus.records = malloc(((size_t)size / 2 + 1) * sizeof *corpus.records);
  if (corpus.bytes == NULL || corpus.records == NULL || fread(corpus.bytes, 1, (size_t)size, file) != (size_t)size)
    fail(path);
  fclose(file);
  corpus.bytes[size] = 0;
  for (char *at = corpus.bytes; *at != 0 && corpus.count < most;) {
    char *end = strstr(at, "\n\n");
    char *next = end == NULL ? at + strlen(at) : end + 2;
    if (end == NULL) end = next > at && next[-1] == '\n' ? next - 1 : next;
    corpus.records[corpus.count++] = (struct record){at, (size_t)(end - at)};
    at = next;
  }
  return corpus;
}

/* Makes the message: the ifunc's own payload_init compresses the text into it. */
static tc_message_t *make_message(tc_ifunc_t *ifunc, struct record record, struct totals *totals) {
  tc_message_t *message;
  size_t size;
  check(tc_message_create(ifunc, record.text, record.size, &message), "compressing a record");
  tc_message_payload(message, &size);
  totals->records += 1;
  totals->text_bytes += record.size;
  totals->payload_bytes += size;
  return message;
}

/* Sends one record and waits until it has been inserted. Milliseconds. */
static double call(tc_endpoint_t *endpoint, tc_message_t *message) {
  tc_future_t *future;
  const double start = now();
  check(tc_endpoint_call(endpoint, message, 30000, &future), "sending a record");
  if (tc_future_wait(future, 30000) != TC_OK || tc_future_status(future) != TC_OK) {
    fprintf(stderr, "feeder: the record was not inserted: %s\n", tc_error_message());
    exit(1);
  }
  const double end = now();
  tc_future_free(future);
  tc_message_free(message);
  return (end - start) * 1e3;
}

static struct totals send_records(tc_node_t *node, tc_endpoint_t *endpoint, tc_ifunc_t *ifunc,
                                  const struct record *records, size_t count) {
  struct totals totals = {0};
  const unsigned long long before = code_bytes_sent(node);
  totals.first_ms = call(endpoint, make_message(ifunc, records[0], &totals));
  totals.first_payload = totals.payload_bytes;
  totals.first_code = code_bytes_sent(node) - before;
  totals.second_ms = call(endpoint, make_message(ifunc, records[1], &totals));
  const double start = now();
  for (size_t i = 2; i < count; ++i) {
    tc_message_t *message = make_message(ifunc, records[i], &totals);
    tc_status_t status;
    while ((status = tc_endpoint_send(endpoint, message)) == TC_ERR_BUSY) {
    }
    check(status, "sending a record");
    tc_message_free(message);
  }
  check(tc_endpoint_flush(endpoint, 60000), "waiting until all records are in");
  totals.rest_s = now() - start;
  totals.all_code = code_bytes_sent(node) - before;
  return totals;
}

static void print_totals(const char *title, const char *content_id, const struct totals *t) {
  printf("%s (content id %.12s)\n", title, content_id);
  printf("  %zu records, %llu bytes of text in %llu bytes of payload: %.2f to 1\n", t->records, t->text_bytes,
         t->payload_bytes, (double)t->text_bytes / (double)t->payload_bytes);
  const double others = (double)(t->payload_bytes - t->first_payload) / (double)(t->records - 1);
  printf(
      "  first message: %llu bytes of payload and %llu of code; all others: %.0f bytes each (mean) and %llu of code\n",
      t->first_payload, t->first_code, others, t->all_code - t->first_code);
  printf("  time until inserted: first message %.2f ms, second %.2f ms\n", t->first_ms, t->second_ms);
  if (t->records > 2)
    printf("  the others: %.0f records/s, compressing at the source included\n", (double)(t->records - 2) / t->rest_s);
}

int main(int argc, char **argv) {
  if (argc < 5 || argc > 6) {
    fprintf(stderr, "usage: feeder ADDRESS:PORT CORPUS FIRST.ifunc CHANGED.ifunc [RECORDS]\n");
    return 2;
  }
  const struct corpus corpus = read_corpus(argv[2], argc == 6 ? strtoul(argv[5], NULL, 10) : (size_t)-1);
  if (corpus.count < 4) {
    fprintf(stderr, "feeder: %s has %zu records when 4 are the least to show anything\n", argv[2], corpus.count);
    return 1;
  }
  tc_config_t *config;
  tc_node_t *node;
  tc_endpoint_t *endpoint;
  check(tc_config_create(&config), "configuration");
  check(tc_config_set(config, "name", "feeder"), "name");
  check(tc_config_set(config, "listen", "none"), "listen");
  check(tc_node_create(config, &node), "starting");
  tc_config_free(config);
  check(tc_node_connect(node, argv[1], 10000, &endpoint), "connecting");
  printf("connected to %s by way of %s; compressing with libzstd %s\n", tc_endpoint_peer(endpoint),
         tc_endpoint_transport(endpoint), ZSTD_versionString());

  tc_ifunc_t *first, *changed;
  const size_t half = corpus.count / 2;
  check(tc_ifunc_register(node, argv[3], &first), "registering the ifunc");
  const struct totals before = send_records(node, endpoint, first, corpus.records, half);
  print_totals("ifunc `insert`, first version", tc_ifunc_content_id(first), &before);

  check(tc_ifunc_register(node, argv[4], &changed), "registering the changed ifunc");
  if (strcmp(tc_ifunc_name(first), tc_ifunc_name(changed)) != 0)
    fprintf(stderr, "feeder: the two ifuncs have different names, which shows less\n");
  const struct totals after = send_records(node, endpoint, changed, corpus.records + half, corpus.count - half);
  print_totals("ifunc `insert`, changed while the node runs", tc_ifunc_content_id(changed), &after);

  check(tc_endpoint_free(endpoint, 5000), "disconnecting");
  tc_node_free(node);
  free(corpus.records);
  free(corpus.bytes);
  return 0;
}
