/* SPDX-License-Identifier: Apache-2.0 */
/* Listing 1.4 of the 2021 paper, as it is printed, within what it leaves out: two connected processes (peer.h of the
 * examples). Two slips of the print are mended: the name has to be the library's, and the flush is not UCX's call. */
#include "paq8px.h"
#include "peer.h"

static void source(struct local *me, struct remote *other, const char *text) {
  ucp_context_h ucp_ctx = me->context;
  ucp_ep_h ep = other->ep;
  uint64_t recv_buffer = other->memory;
  ucp_rkey_h rmt_rkey = other->rkey;
  void *record = (void *)text;
  size_t record_size = strlen(text);
#define ucp_ep_flush_nb(ep) flush(me, other)

  /* clang-format off */
/* On the source process */
ucp_ifunc_h ih;
ucp_ifunc_msg_t msg;

ucp_register_ifunc(ucp_ctx, "paq8px", &ih);
ucp_ifunc_msg_create(ih, record, record_size, &msg);

ucp_ifunc_send_nbix(ep, msg, recv_buffer, rmt_rkey);
ucp_ep_flush_nb(ep); // And wait on completion

ucp_ifunc_msg_free(msg);
ucp_deregister_ifunc(ucp_ctx, ih);
  /* clang-format on */
}

static void target(struct local *me, struct database *db_handle) {
  ucp_context_h ucp_ctx = me->context;
  void *recv_buffer = me->memory;
  size_t recv_buffer_size = me->size;

  /* clang-format off */
/* On the target process */
ucs_status_t s;
do {
    s = ucp_poll_ifunc(ucp_ctx, recv_buffer,
                      recv_buffer_size, db_handle);
} while (s != UCS_OK);
  /* clang-format on */
}

int main(void) {
  static const char text[] = "aaaaaaaaaaaaaaaaaaaabccccccccccccccccccccccccccccc";
  int fd;
  const int child = split(&fd);
  struct local me;
  struct remote other;
  int wrong = 0;
  local_open(&me, 1 << 16, 1);
  remote_open(&other, &me, fd);
  if (child) {
    struct database db = {0};
    target(&me, &db);
    wrong = db.records != 1 || db.size != strlen(text) || memcmp(db.record, text, db.size) != 0;
    printf("%zu record of %zu bytes%s\n", db.records, db.size, wrong ? ", which is wrong" : "");
    fflush(stdout);
  } else {
    source(&me, &other, text);
  }
  remote_close(&other, &me, fd);
  local_close(&me);
  return child ? wrong : join(child);
}
