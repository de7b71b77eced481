/* SPDX-License-Identifier: Apache-2.0
 *
 * What injected code may call at the target. For authors of ifuncs, in C and C++ (other languages declare the
 * same functions). In a file that defines ifunc `foo`:
 *
 *     void foo_main(void *payload, size_t payload_size, void *target_args);          runs at the target
 *
 * and, optionally, run at the source to build the payload in place (2021 paper, Listing 1.2; without them the
 * source args are the payload):
 *
 *     size_t foo_payload_get_max_size(void *source_args, size_t source_args_size);
 *     int    foo_payload_init(void *payload, size_t payload_size, void *source_args, size_t source_args_size);
 *
 * or, in the form of the 2022 prototype, where the size may shrink:
 *
 *     size_t foo_payload_bound(void *source_args, size_t source_args_size);
 *     int    foo_payload_init(void *source_args, size_t source_args_size, void *payload, size_t *payload_size);
 *
 * The payload is yours to change until foo_main returns; it is aligned to 16 bytes unless TC_PAYLOAD_ALIGN asks
 * for more. `target_args` is whatever the target's application passes to its ifuncs, or NULL.
 *
 * All functions below are for the thread that foo_main was called on, while it runs. They copy the bytes given
 * to them before they return. docs/ifunc-abi.md is the reference; TC_IFUNC_ABI its version.
 */
#ifndef THREECHAINS_IFUNC_H
#define THREECHAINS_IFUNC_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#define TC_IFUNC_ABI 1

#ifdef __cplusplus
extern "C" {
#endif

/* This node's number, and how many nodes its cluster has. A node that is in no cluster is number 0 of 1. */
uint32_t tc_id(void);
uint32_t tc_count(void);

/* Data that the target exposes under a name (a mapped file, a table, a handle). NULL when there is none; `size`
 * (may be NULL) receives its bytes. Whether it may be written is the target's affair. Valid while the node runs. */
void *tc_data(const char *name, size_t *size);

/* Sends the answer to the process that made the call, whatever path the call took. At most one per call; without
 * one, a call that asked for an answer gets an empty one when foo_main returns.
 * TC_ERR_INVALID when a reply was sent before; TC_OK, and nothing is sent, when nobody asked for an answer;
 * TC_ERR_DISCONNECTED when the caller is gone. TC_ERR_NO_MEMORY: try again; a call that ends without an answer then
 * fails with the same status. */
tc_status_t tc_reply(const void *bytes, size_t size);

/* Sends this ifunc itself to another node, with a payload of its own. The duty to answer goes along: after it, the
 * local end of foo_main answers nobody. TC_ERR_NOT_FOUND (no such node), TC_ERR_LIMIT (hops used up, or
 * too many calls wait here for answers that can come back through this node alone), TC_ERR_DISCONNECTED (also when the first sender waits for an answer and listens nowhere, so that no other node could
 * bring it). Code that the node lacks travels along by itself. */
tc_status_t tc_forward(uint32_t node, const void *payload, size_t size);

/* The same with another ifunc, which answers in the place of this one: the operation goes on with other code. `name` is
 * a bundled ifunc that travels along with this ifunc (`ifunc build --with`), or an ifunc that this node knows.
 * TC_ERR_NOT_FOUND also for the name. */
tc_status_t tc_forward_as(uint32_t node, const char *name, const void *payload, size_t size);

/* Sends another ifunc, found by `name` as above, to a node. Nobody waits for it; use tc_forward or tc_forward_as to pass
 * on the duty to answer. TC_ERR_NOT_FOUND (node or ifunc), TC_ERR_LIMIT (fan-out used up), TC_ERR_DISCONNECTED. */
tc_status_t tc_inject(uint32_t node, const char *name, const void *payload, size_t size);

/* Tells the sender that the call failed, with a number and a sentence of yours. The first one counts; return from
 * foo_main after it. */
void tc_fail(int32_t code, const char *message);

/* Codes with which `ifunc build` makes a language's own way of giving up into tc_fail(): the call fails, foo_main is
 * left at once, and nothing else happens to the node. All are negative; codes of yours should not be. */
#define TC_FAIL_TRAP (-1)       /* __builtin_trap(), or a check that the compiler put in */
#define TC_FAIL_ABORT (-2)      /* abort(), a failed assert(), std::terminate() */
#define TC_FAIL_BOUNDS (-3)     /* an index outside of its array, slice or vector */
#define TC_FAIL_ARITHMETIC (-4) /* overflow or division by zero, where the language checks */
#define TC_FAIL_PANIC (-5)      /* a Rust panic that is none of the above */
#define TC_FAIL_EXCEPTION (-6)  /* an exception that nobody caught */

/* Writes a line of at most 4096 bytes to the node's log; the rest is cut off. Levels: 0 debug, 1 info, 2 warning, 3 error. */
void tc_log(int level, const char *message);

#ifdef __cplusplus
}
#endif

/* At file scope: asks for payloads aligned to `bytes`, a power of two from 16 to 4096. */
#ifdef __cplusplus /* where a const alone would be local to the file, and be gone before anyone reads it */
#define TC_PAYLOAD_ALIGN(bytes)               \
  extern "C" {                                \
  extern const unsigned tc_payload_alignment; \
  }                                           \
  const unsigned tc_payload_alignment = (bytes)
#else
#define TC_PAYLOAD_ALIGN(bytes) const unsigned tc_payload_alignment = (bytes)
#endif

/* At file scope: says that this ifunc is *concurrent code*. A node with several threads may run it on any of them, at
 * the same time as all other code of the node: other ifuncs, and other calls of this one.
 *
 *     TC_CONCURRENT;
 *
 * What the author promises: the code writes nothing without synchronisation that other code uses, and reads nothing
 * without it that other code writes. That is about global and static variables of the ifunc, about data of the target
 * (tc_data(), target_args), and about the functions that it calls, in shared libraries and sent ones. Atomic operations
 * are fine. Nobody checks it. The payload and local variables belong to one call. The functions above are always safe.
 *
 * Order: calls that come from one endpoint run in the order in which they were sent, as long as they are ordinary code.
 * No order is promised for a call of concurrent code. It may begin before calls that were sent earlier have ended, and
 * later than calls that were sent after it.
 *
 * On a node with one thread it changes nothing. It belongs to the manifest, so the code has another content id with it.
 * Refused by `ifunc build` for a library (--library), whose users say it, and with static constructors. */
#ifdef __cplusplus
#define TC_CONCURRENT                  \
  extern "C" {                         \
  extern const unsigned tc_concurrent; \
  }                                    \
  const unsigned tc_concurrent = 1
#else
#define TC_CONCURRENT const unsigned tc_concurrent = 1
#endif

#endif
