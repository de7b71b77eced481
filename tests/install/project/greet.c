/* An ifunc: answers "hello, NAME" to a payload of NAME. */
#include <string.h>
#include <threechains/ifunc.h>

void greet_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  char answer[64] = "hello, ";
  const size_t room = sizeof answer - 7;
  const size_t size = payload_size < room ? payload_size : room;
  memcpy(answer + 7, payload, size);
  tc_reply(answer, 7 + size);
}
