/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that will come. Include threechains.h, which has the conventions.
 *
 * A future becomes ready once, by its answer, its deadline, tc_future_cancel(), the loss of the peer or the end of the node,
 * and stays so. A future that is ready belongs to no node any more: any one thread may use it, also after the node's end.
 */
#ifndef THREECHAINS_FUTURE_H
#define THREECHAINS_FUTURE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits at most `timeout_ms` for the future to be ready, progressing the node. It says nothing about how the call ended:
 * tc_future_status() does.
 * TC_OK: it is ready. TC_ERR_TIMEOUT: it is not ready yet; wait again. (The call's own deadline makes the future ready.)
 * TC_ERR_INVALID: it is not ready, and this thread is inside an ifunc or a function that the library called. */
TC_API tc_status_t tc_future_wait(tc_future_t *future, uint32_t timeout_ms);

/* Is it ready? 1 or 0. Does not progress the node. Any thread. */
TC_API int tc_future_ready(const tc_future_t *future);

/* How the call ended, once the future is ready. TC_OK: it ran, and tc_future_bytes() has its answer. Otherwise why it
 * failed, and tc_future_error() and tc_error_message() have the sentence: TC_ERR_IFUNC, the ifunc called tc_fail();
 * TC_ERR_TIMEOUT, its deadline passed, and it may still run; TC_ERR_DISCONNECTED, the peer or a node on its way was lost;
 * TC_ERR_CANCELED, tc_future_cancel(); TC_ERR_CLOSED, our node was freed; any other status, what the target said about it.
 * TC_ERR_INVALID before it is ready: ask tc_future_ready() where that cannot be told from a call that ended so. */
TC_API tc_status_t tc_future_status(const tc_future_t *future);

/* Calls `function` with `context` once, when the future is ready: on the thread that progresses the node, or before this
 * returns when the future is ready already.
 * The function may send, call, register ifuncs, close endpoints, read this and other futures and free them, and free the
 * node. It must not wait, which is told to it by TC_ERR_INVALID, nor poll or throw.
 * tc_node_free() ends the calls that wait and calls their functions before it returns; new calls are refused then.
 * After tc_future_free() the function is not called any more; if it is being called by the progress thread,
 * tc_future_free() waits for its end.
 * TC_ERR_INVALID: the future has a function already. TC_ERR_NO_MEMORY. */
typedef void (*tc_future_function_t)(tc_future_t *future, void *context);
TC_API tc_status_t tc_future_on_ready(tc_future_t *future, tc_future_function_t function, void *context);

/* The bytes given to tc_reply(); `size` (may be NULL) receives their number. The future's; valid until it
 * is freed. NULL and 0 while it is not ready. */
TC_API const void *tc_future_bytes(const tc_future_t *future, size_t *size);

/* What went wrong, naming ifunc, node and cause; "" when nothing did, or nothing yet. The future's; valid until it is
 * freed. */
TC_API const char *tc_future_error(const tc_future_t *future);

/* The number given to tc_fail(); 0 otherwise. */
TC_API int32_t tc_future_code(const tc_future_t *future);

/* The number of the node that answered; 0 while none has. */
TC_API uint32_t tc_future_node(const tc_future_t *future);

/* Takes the call back, when the answer is of no use any more. The future is ready at once, with TC_ERR_CANCELED; the peer is
 * told, and does not run the call while it waits there: for code, for a thread, or for a cell. A call that runs in a cell ends
 * with the cell's process, and what it has written until then stays. Else it runs to its end, and its answer is dropped. So
 * does a call that the peer has forwarded. A future that is ready stays as it is.
 * TC_OK; tc_future_status() tells whether the answer was there first. */
TC_API tc_status_t tc_future_cancel(tc_future_t *future);

/* Frees it, ready or not; an answer that comes afterwards is dropped. NULL is ignored. While it is not ready, a function
 * of its node like any other: the node must still be there. */
TC_API void tc_future_free(tc_future_t *future);

#ifdef __cplusplus
}
#endif
#endif
