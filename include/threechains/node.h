/* SPDX-License-Identifier: Apache-2.0
 *
 * A node: its life, what injected code finds at it, its progress, and what it tells about itself. Include threechains.h,
 * which has the conventions.
 */
#ifndef THREECHAINS_NODE_H
#define THREECHAINS_NODE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Life ------------------------------------------------------------------------------------------------------ */

/* Starts a node. `config` may be NULL for all defaults; it is copied. The node is the caller's: end it with
 * tc_node_free(). With a bootstrap it returns when all nodes know each other's addresses.
 * TC_ERR_IO: the address of option listen cannot be listened at. TC_ERR_LIMIT: this process may open too few file
 * descriptors (ulimit -n) to take a peer; the library does not change that limit. TC_ERR_UNSUPPORTED: the transport cannot
 * be had, with the system's or UCX's words. TC_ERR_DENIED: UCX would be open to every network (option ucx-devices).
 * TC_ERR_INVALID: options contradict each other, the launcher or other nodes. With a bootstrap also TC_ERR_TIMEOUT,
 * which names the nodes that did not come, and TC_ERR_BUSY: a living node has our number. */
TC_API tc_status_t tc_node_create(const tc_config_t *config, tc_node_t **node);

/* Stops the progress thread, ends the calls that still wait with TC_ERR_CLOSED and tells their tc_future_on_ready(),
 * disconnects from all peers, and frees the node with its endpoints and ifuncs. Free its messages before. Futures stay
 * valid until they are freed. NULL is ignored. Inside an ifunc or a function that the library calls, the node is not to be
 * used any more once this has returned; it is freed when the call that polls it returns, or by the progress thread.
 * Before it disconnects, it waits until its peers have taken what they were sent: as long as a peer takes something within
 * each second, and some ten seconds at most. What did not leave is told in the log. What comes meanwhile is not run. Whether
 * a peer has run everything is known by tc_endpoint_flush() and tc_endpoint_free() alone.
 * With option threads above 1 it waits, first of all and without a limit, for calls that run on other threads. Calls that were
 * handed to these and have not begun are refused with TC_ERR_CLOSED, and the log says how many. The caller must hold no lock
 * that functions need which such calls use (tc_node_export()). */
TC_API void tc_node_free(tc_node_t *node);

/* Where peers can connect to: "127.0.0.1:41234"; "" when the node does not listen. The node's; valid while it is. Any
 * thread. */
TC_API const char *tc_node_address(const tc_node_t *node);

/* The number of this node in its cluster, as tc_id() tells ifuncs. Outside of a cluster: its configured id, or 0. Any
 * thread. */
TC_API uint32_t tc_node_id(const tc_node_t *node);
/* How many nodes the cluster has; 1 outside of a cluster. Any thread. */
TC_API uint32_t tc_node_count(const tc_node_t *node);
/* Where node `number` of the cluster can be connected to, for tc_node_connect(); our own address for our own number.
 * "" when there is no such node. Never NULL. The node's; valid while it is. Any thread. */
TC_API const char *tc_node_peer_address(const tc_node_t *node, uint32_t number);

/* ---- What injected code finds here ----------------------------------------------------------------------------- */

/* Lets injected code call the function, or use the data, at `address` by `symbol`. The application keeps it alive as
 * long as the node is. For ifuncs that arrive from now on. A function that ifuncs call runs on the thread that
 * progresses the node, or, with option threads above 1, on one of the node's other threads: then also while the application's
 * own thread runs the application's code. Ordinary code calls one such function at a time, concurrent code several at once.
 * There it may call the library only while a progress thread runs, and as everywhere, it cannot wait for answers.
 * TC_ERR_NO_MEMORY. */
TC_API tc_status_t tc_node_export(tc_node_t *node, const char *symbol, void *address);

/* Gives injected code `size` bytes at `data` by name: tc_data(name). The application keeps them alive as long as the
 * node is, or until it withdraws the name: NULL `data` does so. The last data given to a name counts.
 * With option threads above 1, ifuncs use the data also between polls. Calls on other threads may still use what the name stood
 * for before. So where `data` is other memory or `size` is smaller, this function polls until they have ended, for ten seconds
 * at most; inside an ifunc, or a function that the library calls, it does not wait.
 * TC_ERR_BUSY: they have not ended. The name stands for the new data all the same. Keep the old memory until the same call,
 * made once more, says TC_OK, or the node is freed. TC_ERR_NO_MEMORY. */
TC_API tc_status_t tc_node_expose(tc_node_t *node, const char *name, void *data, size_t size);

/* The same for memory that other processes can have as well, so that code in cells can use it (option isolate): `data` maps the
 * file `fd` from its beginning, shared (MAP_SHARED), as a mapped file or a memfd. The library has a descriptor of its own
 * when this returns. Code in a cell can write to the data when `fd` is open for writing, and its caller has the right to.
 * Data of tc_node_expose() is not there in a cell: tc_data() gives NULL.
 * TC_ERR_INVALID: `fd` is no file, or is shorter than `size`. TC_ERR_IO: no descriptor is left. Otherwise as tc_node_expose(). */
TC_API tc_status_t tc_node_expose_file(tc_node_t *node, const char *name, void *data, size_t size, int fd);

/* What ifuncs that run from now on get as target_args: a pointer of the application's, which the library does not look
 * at. Initially NULL. (Both papers: the argument that the target gives to ucp_poll_ifunc.)
 * With option threads above 1, calls on other threads may use an earlier one until the node is freed. */
TC_API void tc_node_set_target_args(tc_node_t *node, void *target_args);

/* ---- Progress --------------------------------------------------------------------------------------------------
 *
 * With option threads above 1, the node has other threads for calls that may take long (docs/threads.md). Their answers leave
 * when the node is polled, and what their ifuncs ask of the node waits for that. They end a wait and make tc_node_fd() readable. */

/* Runs frames that have come and moves frames that must go; never waits. `executed` (may be NULL) receives the number of
 * ifuncs that ran here, or of which it was learnt that they have ended on other threads. Inside an ifunc, and inside a function that the library calls, it does nothing.
 * TC_ERR_NO_MEMORY costs at most a call or a connection; poll again. */
TC_API tc_status_t tc_node_poll(tc_node_t *node, size_t *executed);

/* As tc_node_poll(), and when there is nothing to do, sleeps until there is, at most `timeout_ms`. It polls for a fifth
 * of a millisecond before it sleeps; asleep it costs no CPU. TC_OK also when nothing came. */
TC_API tc_status_t tc_node_wait(tc_node_t *node, uint32_t timeout_ms, size_t *executed);

/* Ends a tc_node_wait() of another thread, now or the next one, and makes tc_node_fd() readable: set the flag by which
 * that thread's loop ends, then wake it. Any thread, and signal handlers. */
TC_API void tc_node_wake(tc_node_t *node);

/* The ifunc that this node runs at the moment: for a program whose node's thread does not come back from a poll or a wait. Of
 * several, on several threads, it is the one of the node's thread, or any if that one runs none.
 * Its name is copied to `name`, with a zero behind it, and cut to `capacity` bytes in all; with `capacity` 0, `name` may be
 * NULL. Any thread, also while another one is inside the node, but no signal handlers. TC_ERR_NOT_FOUND: no ifunc runs. */
TC_API tc_status_t tc_node_running_ifunc(const tc_node_t *node, char *name, size_t capacity);

/* Reads the keyring file anew, as `ifunc serve` does on SIGHUP. What follows happens in the node's next poll or wait, which
 * this call wakes: links of keys that may not connect any more end, and code that a key which was revoked or taken out
 * brought or signed goes. Any thread, but no signal handlers. TC_ERR_INVALID, TC_ERR_DENIED, TC_ERR_IO,
 * TC_ERR_TOO_LARGE: the file is bad, with the line that is; the node goes on with the keyring that it has. */
TC_API tc_status_t tc_node_reload_keys(tc_node_t *node);

/* Starts a thread of the node's that polls and sleeps, so that the application need not. Ifuncs run on it, and functions
 * given to tc_future_on_ready() are called on it. Any thread may call functions of the node meanwhile; the library takes
 * a lock of the node's. TC_ERR_INVALID: it runs already, or this thread is inside an ifunc or a function that the library
 * called. TC_ERR_IO: no thread can be had. */
TC_API tc_status_t tc_node_start_progress(tc_node_t *node);
/* As tc_node_start_progress(), for programs whose threads wait for answers: a thread that waits, in tc_future_wait(),
 * tc_endpoint_flush() or another function, polls the node itself, so that an answer needs no hand-over between two threads.
 * Ifuncs run on that thread too, and functions given to tc_future_on_ready() are called on it. While the program uses the
 * node, the node's thread polls it only now and then; 20 ms after the last call it serves the node alone. */
TC_API tc_status_t tc_node_start_shared_progress(tc_node_t *node);
/* Ends that thread; returns when it has ended. TC_OK also when there was none. TC_ERR_INVALID inside an ifunc or a
 * function that the library called: the thread goes on. */
TC_API tc_status_t tc_node_stop_progress(tc_node_t *node);

/* ---- Progress in an event loop of the program's own ------------------------------------------------------------
 *
 *     int fd = -1, timeout_ms = 0;
 *     tc_node_fd(node, &fd);
 *     while (running) {
 *       tc_node_poll(node, NULL);
 *       if (tc_node_arm(node, &timeout_ms) == TC_ERR_BUSY) continue;
 *       struct pollfd wanted[] = {{fd, POLLIN, 0}, ...};
 *       poll(wanted, ..., timeout_ms);
 *     }
 *
 * The scheme is that of UCX's ucp_worker_get_efd() and ucp_worker_arm(). */

/* A descriptor that is readable when the node has something to do, once tc_node_arm() returned TC_OK. Wait for it to be
 * readable, with poll(), epoll or the like (level-triggered), and do nothing else with it. The node's; valid while it
 * is. TC_ERR_UNSUPPORTED: the transport has none. */
TC_API tc_status_t tc_node_fd(tc_node_t *node, int *fd);

/* Call it each time before waiting for tc_node_fd(). TC_OK: there is nothing to do now, and the descriptor becomes
 * readable when there is. `timeout_ms` receives how long to wait at most, for what no descriptor announces, as the
 * deadlines of calls: as poll() and epoll_wait() take it, -1 for as long as it takes. Then call tc_node_poll() and arm
 * again; arming also ends calls whose deadline has passed, and then says TC_ERR_BUSY.
 * TC_ERR_BUSY: there is something to do, or something has happened; look at your futures, poll, and arm again.
 * TC_ERR_INVALID: a progress thread runs, which waits by itself. TC_ERR_UNSUPPORTED: the transport has no descriptor. */
TC_API tc_status_t tc_node_arm(tc_node_t *node, int *timeout_ms);

/* ---- Statistics ------------------------------------------------------------------------------------------------ */

/* One number about the node, by its name; docs/statistics.md and tc_statistic_at() list them. TC_ERR_NOT_FOUND for other
 * names; the message lists those that there are. */
TC_API tc_status_t tc_node_stat(tc_node_t *node, const char *name, uint64_t *value);

/* What the node says of itself, as tc_endpoint_ask_statistics() has it of a peer: its name and state, all statistics, its
 * ifuncs and its connections, a thing a line. `size` receives how many bytes that is. They are copied to `text`, which is the
 * caller's, where `capacity` is enough; no zero stands behind them. With `capacity` 0, `text` may be NULL.
 * Thread: the node's. TC_ERR_LIMIT: `capacity` is too small; `size` says what is needed now. TC_ERR_NO_MEMORY. */
TC_API tc_status_t tc_node_report(tc_node_t *node, char *text, size_t capacity, size_t *size);

/* What numbers there are: constants of the library. Any thread. */
TC_API size_t tc_statistic_count(void);
/* Number `index`, from 0 on; NULL from tc_statistic_count() on. */
TC_API const tc_statistic_t *tc_statistic_at(size_t index);
/* For tc_node_stat(): "code-bytes". These functions return "" for NULL. */
TC_API const char *tc_statistic_name(const tc_statistic_t *statistic);
/* What it counts: "bytes", "ns", "calls". */
TC_API const char *tc_statistic_unit(const tc_statistic_t *statistic);
/* A sentence about what it means. */
TC_API const char *tc_statistic_help(const tc_statistic_t *statistic);
/* 1: it only grows since the node began, as a counter. 0: it is so now, or was so the last time, as a gauge; also for NULL. */
TC_API int tc_statistic_is_total(const tc_statistic_t *statistic);

#ifdef __cplusplus
}
#endif
#endif
