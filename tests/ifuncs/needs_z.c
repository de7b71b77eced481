/* SPDX-License-Identifier: Apache-2.0
 * Replies with libz's version: needs a library that a node must allow. */
#include <threechains/ifunc.h>

const char *zlibVersion(void);

void needs_z_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload;
  (void)payload_size;
  (void)target_args;
  const char *version = zlibVersion();
  size_t size = 0;
  while (version[size] != 0) ++size;
  tc_reply(version, size);
}
