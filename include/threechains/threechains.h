/* SPDX-License-Identifier: Apache-2.0
 *
 * Three-Chains: move functions, not only data, between the processes of a distributed system.
 *
 *     types.h     handles, errors, the version
 *     config.h    how a node is to be: its options, who takes its log
 *     node.h      a node: its life, what injected code finds there, progress, statistics
 *     message.h   ifuncs that this process can send, and messages made of them
 *     endpoint.h  connections to peers, and sending
 *     future.h    answers
 *
 * Conventions, once for all of these:
 *   - Handles are opaque. Arguments are scalars and pointers only, so that any language can call this.
 *   - A function that can fail returns tc_status_t. TC_OK is success; otherwise the out-parameters are untouched
 *     and tc_error_message() has a sentence about it, valid until this thread's next call into the library.
 *     TC_ERR_INVALID comes from every function for a NULL that it does not allow, and TC_ERR_NO_MEMORY from every
 *     one that allocates. status.h says for each status what the caller can do.
 *   - Threads: a node belongs to one thread at a time, and so do its endpoints, ifuncs, messages and futures:
 *     calls on them must not overlap, unless "any thread" is said. While a progress thread runs
 *     (tc_node_start_progress, tc_node_start_shared_progress) any thread may call; the library then takes a lock of the
 *     node's. Different nodes are independent. With option threads above 1, ifuncs also run on other threads, at any time
 *     (docs/threads.md).
 *   - Functions that the library calls (tc_log_function_t, tc_future_function_t, exported symbols) run on the thread
 *     that is named there, and must not throw.
 *   - Times are in milliseconds. Every wait has a deadline: TC_ERR_TIMEOUT says that it passed. A time of 0 polls once
 *     and does not wait.
 *   - No function throws, and none aborts on what came from another process.
 *   - Strings are UTF-8, end with a zero byte, and are copied before a function returns. Strings that are returned
 *     belong to the library and are not freed; each function says how long they are valid.
 */
#ifndef THREECHAINS_THREECHAINS_H
#define THREECHAINS_THREECHAINS_H

#include "config.h"
#include "endpoint.h"
#include "future.h"
#include "message.h"
#include "node.h"
#include "types.h"

#endif
