// SPDX-License-Identifier: Apache-2.0
// Listing 1.4 of the 2021 paper: a record is packed at the source, sent with the code that unpacks it, and taken in at
// the target by a loop that polls and does nothing else. Compiled with THREECHAINS_UCP_IFUNC_2021; the ifunc is digest.c.
//
//     UCX_IFUNC_LIB_DIR=build/release/ifuncs listing_1_4 [own]
#include "digest.h"
#include "peer.h"

int main(int argc, char **argv) {
  const int own = argc > 1 && strcmp(argv[1], "own") == 0;
  int fd;
  const int child = split(&fd);
  struct local me;
  struct remote other;
  local_open(&me, 1 << 16, !own);
  remote_open(&other, &me, fd);
  ucp_context_h ucp_ctx = me.context;

  if (!child) { /* On the source process */
    char record[5000];
    for (size_t i = 0; i < sizeof record; ++i) record[i] = (char)('a' + i % 17);
    ucp_ifunc_h ih;
    ucp_ifunc_msg_t msg;

    CHECK(ucp_register_ifunc(ucp_ctx, "digest", &ih));
    CHECK(ucp_ifunc_msg_create(ih, record, sizeof record, &msg));
    const ucs_status_t status = ucp_ifunc_msg_send_nbix(other.ep, msg, other.memory, other.rkey);
    if (status != UCS_INPROGRESS) CHECK(status);
    flush(&me, &other);

    ucp_ifunc_msg_free(msg);
    ucp_deregister_ifunc(ucp_ctx, ih);
  } else { /* On the target process */
    struct digest db_handle = {0};
    ucs_status_t s;
    do {
      s = ucp_poll_ifunc(ucp_ctx, me.memory, me.size, &db_handle);
      if (s != UCS_ERR_NO_MESSAGE) CHECK(s);
    } while (s != UCS_OK);
    printf("%lu bytes, SHA-256 ", (unsigned long)db_handle.size);
    for (int i = 0; i < 32; ++i) printf("%02x", db_handle.sha256[i]);
    printf("%s\n", db_handle.failed ? " (damaged)" : "");
    fflush(stdout);
  }
  remote_close(&other, &me, fd);
  local_close(&me);
  return join(child);
}
