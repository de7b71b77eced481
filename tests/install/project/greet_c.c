/* Two nodes in one process, on the installed C API: one sends a function to the other and prints what it answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threechains/threechains.h>

static void must(tc_status_t status, const char *what) {
  if (status == TC_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, tc_status_name(status), tc_error_message());
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  tc_node_t *target = NULL, *source = NULL;
  must(tc_node_create(NULL, &target), "target");
  must(tc_node_start_progress(target), "progress");

  tc_config_t *config = NULL;
  must(tc_config_create(&config), "config");
  must(tc_config_set(config, "path", argv[1]), "path");
  must(tc_node_create(config, &source), "source");
  tc_config_free(config);

  tc_endpoint_t *peer = NULL;
  must(tc_node_connect(source, tc_node_address(target), 10000, &peer), "connect");
  tc_ifunc_t *greet = NULL;
  must(tc_ifunc_register(source, "greet", &greet), "register");
  char name[] = "world";
  tc_message_t *message = NULL;
  must(tc_message_create(greet, name, strlen(name), &message), "message");
  tc_future_t *answer = NULL;
  must(tc_endpoint_call(peer, message, 10000, &answer), "call");
  must(tc_future_wait(answer, 10000), "waiting for the answer");
  must(tc_future_status(answer), "answer");

  size_t size = 0;
  const char *bytes = tc_future_bytes(answer, &size);
  const int right = size == 12 && memcmp(bytes, "hello, world", 12) == 0;
  printf("%.*s (C, %s, %s)\n", (int)size, bytes, tc_endpoint_transport(peer), tc_version());

  tc_future_free(answer);
  tc_message_free(message);
  tc_ifunc_free(greet);
  must(tc_endpoint_free(peer, 1000), "close");
  tc_node_free(source);
  tc_node_free(target);
  return right ? 0 : 1;
}
