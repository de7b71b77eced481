// SPDX-License-Identifier: Apache-2.0
//
// Leaves its payload wherever code in a cell can write: in a variable, on the heap, in memory at a place of its own choice, in
// the environment, and by the address of the named data `text`. Answers with its process, and with what it found at each of
// these places from an earlier call.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <threechains/ifunc.h>
#include <unistd.h>

enum { bytes = 4096 };

static char in_variable[64];

struct page {
  char text[64];
  char *heap;
  const char *data;
};

// Computed: an address that is written into code is refused.
static struct page *place_of(void) {
  volatile uintptr_t at = 6;
  return (struct page *)(at << 44);
}

static const char *known(const char *text) { return text[0] != 0 ? text : "-"; }

void leave_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  struct page *const place = place_of();
  char name[64] = {0}, answer[512] = {0}, data[16] = {0};
  memcpy(name, payload, payload_size < sizeof name ? payload_size : sizeof name - 1);
  const void *const got =
      mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED && got != place) return tc_fail(1, "no memory at that place");
  if (place->data != NULL) memcpy(data, place->data, sizeof data - 1);
  const char *const in_environment = getenv("LEFT");
  const int length = snprintf(answer, sizeof answer, "%d variable %s heap %s place %s data %s environment %s",
                              (int)getpid(), known(in_variable), place->heap != NULL ? place->heap : "-",
                              known(place->text), known(data), in_environment != NULL ? in_environment : "-");
  memcpy(in_variable, name, sizeof name);
  memcpy(place->text, name, sizeof name);
  place->heap = strdup(name);
  place->data = tc_data("text", NULL);
  setenv("LEFT", name, 1);
  tc_reply(answer, (size_t)length);
}
