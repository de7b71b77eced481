/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections to peers, and sending through them. Include threechains.h, which has the conventions.
 */
#ifndef THREECHAINS_ENDPOINT_H
#define THREECHAINS_ENDPOINT_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Connects to a node ("ADDRESS:PORT" or "unix:PATH") and waits until both sides have greeted; progresses the node
 * meanwhile. A node that has no room for a newcomer, as under a flood of connections, is asked again after a random pause,
 * until the timeout. The endpoint is the node's, until tc_endpoint_free() or the node's end.
 * TC_ERR_TIMEOUT; TC_ERR_LIMIT: the node had no room until the timeout, or this process may open no more file
 * descriptors; TC_ERR_DISCONNECTED: nobody is there; TC_ERR_VERSION; TC_ERR_DENIED: the peer does not trust us;
 * TC_ERR_NOT_FOUND: there is no host of that name; TC_ERR_IO: its name could not be resolved;
 * TC_ERR_UNSUPPORTED: the transport asked for cannot be had; TC_ERR_INVALID: that is no address, or this thread is
 * inside an ifunc or a function that the library called. */
TC_API tc_status_t tc_node_connect(tc_node_t *node, const char *address, uint32_t timeout_ms, tc_endpoint_t **endpoint);

/* Flushes for at most `timeout_ms`, disconnects and frees the endpoint, whatever it returns: what tc_endpoint_flush()
 * does. The connection ends when the peer does not use it either: endpoints that the peer has on it go on working.
 * Inside an ifunc or a function that the library called it frees the endpoint at once and returns without waiting. The
 * node flushes and disconnects while it is progressed later, and failures go to its log.
 * After TC_ERR_TIMEOUT, what has left this node or its buffers still runs at the peer, as long as this node is polled or
 * freed (tc_node_free()). Messages that waited for room are lost, which the log tells. */
TC_API tc_status_t tc_endpoint_free(tc_endpoint_t *endpoint, uint32_t timeout_ms);

/* TC_OK while the peer is there, else why not: TC_ERR_DISCONNECTED, or what ended the connection. Does not progress the
 * node. A lost connection stays lost: close the endpoint and connect again. */
TC_API tc_status_t tc_endpoint_status(tc_endpoint_t *endpoint);

/* How frames travel to this peer: "shm", "unix", "tls", "tcp", "ucx" or "ucx-put". A constant. */
TC_API const char *tc_endpoint_transport(const tc_endpoint_t *endpoint);
/* The peer's label, for messages to people. The endpoint's; valid while it is. */
TC_API const char *tc_endpoint_peer(const tc_endpoint_t *endpoint);
/* The peer's number in its cluster; 0 outside of one. */
TC_API uint32_t tc_endpoint_peer_id(const tc_endpoint_t *endpoint);

/* How long tc_endpoint_send(), tc_endpoint_send_many() and tc_endpoint_call() wait for room when the peer is behind:
 * milliseconds, initially 1000. */
TC_API void tc_endpoint_set_timeout(tc_endpoint_t *endpoint, uint32_t timeout_ms);

/* Sends a message. Nobody waits for its answer, but tc_endpoint_flush() reports if it failed. The payload is copied
 * before it returns. The first send after a poll leaves at once; those that follow are coalesced, and leave with the
 * next poll, wait or flush, or when a batch is full. Frames to one endpoint run in the order in which they were sent.
 * When the peer is behind, waits for room, progressing the node (tc_endpoint_set_timeout).
 * TC_ERR_BUSY: still no room, and the message was not accepted; progress the node and try again. TC_ERR_DISCONNECTED,
 * TC_ERR_TOO_LARGE: over the peer's limit. TC_ERR_NO_MEMORY. */
TC_API tc_status_t tc_endpoint_send(tc_endpoint_t *endpoint, tc_message_t *message);

/* Sends `count` messages in the order of `messages`: the same as tc_endpoint_send() on each, but cheaper, as they become
 * visible to the peer together. `sent` (may be NULL) receives how many were accepted: all with TC_OK, else those before
 * the first that was not, whose error it returns. */
TC_API tc_status_t tc_endpoint_send_many(tc_endpoint_t *endpoint, tc_message_t *const *messages, size_t count,
                                         size_t *sent);

/* Sends a message and asks for its answer, to come within `deadline_ms` (0: no deadline; the peer's loss still ends it).
 * The future is the caller's: free it with tc_future_free(), also before the answer is there. Errors are those of
 * tc_endpoint_send(), and TC_ERR_CLOSED while the node is being destroyed: then there is no future. */
TC_API tc_status_t tc_endpoint_call(tc_endpoint_t *endpoint, tc_message_t *message, uint32_t deadline_ms,
                                    tc_future_t **future);

/* Pushes what was sent and waits until the peer has run all of it, progressing the node. TC_OK: every message accepted
 * so far ran and ended well. Otherwise the first failure since the last flush: what the ifunc or its target said, by
 * name; or TC_ERR_TIMEOUT, TC_ERR_DISCONNECTED. A node's endpoints to one peer may share a connection; then each failure
 * is told once, by the flush of whichever endpoint comes first. TC_ERR_INVALID inside an ifunc or a function that the
 * library called. */
TC_API tc_status_t tc_endpoint_flush(tc_endpoint_t *endpoint, uint32_t timeout_ms);

/* Asks the peer about itself: which node it is, what it runs, and its statistics (docs/statistics.md). A peer that may connect
 * there may ask, also one that may run no code. The peer's own thread answers, between the ifuncs that run on it, at once
 * and before calls that wait; so the time until the future is ready is that of a round trip through both nodes.
 * The answer must come within `deadline_ms` (0: no deadline; the peer's loss still ends it). tc_future_bytes() has it as text,
 * a thing a line, each line with a line feed:
 *
 *     name NAME          its label; may have blanks
 *     version A.B.C      of Three-Chains there
 *     id N               its number in its cluster; no such line outside of one
 *     uptime-ns N        how long it has been there, in nanoseconds
 *     running NAME       the ifunc that runs there now; no such line when none does
 *     draining 0|1       1: it is ending, and takes no more calls
 *     stat NAME VALUE    one of its statistics, as tc_node_stat() gives it there; as many lines as there are
 *     failure REASON N   calls that ended badly there, by reason: a status in lower case, as "denied"
 *     time NAME TIMES    how long something took there: "load" (check and load or compilation of never-seen code),
 *                        "handshake" (of a peer's encrypted connection)
 *     ifunc CALLS FAILURES RUN LATENCY NAME
 *                        one of its ifuncs: calls that ran, calls that ended badly; RUN and LATENCY are TIMES: how long its code
 *                        ran, and how long that took with the wait for a thread or a cell. At most 100, those with most
 *                        calls; "other" has the sums of the rest
 *     link TRANSPORT CALLS RECEIVED SENT WAITING PEER
 *                        one of its connections: calls that came by it, bytes in both directions, bytes that wait to be
 *                        sent. At most 100, those by which most calls came
 *
 * TIMES is SUM,C0,C1,...,C13: nanoseconds in all, and how many took at most 250 ns, 1 us, 4 us, 16 us and so on up to 4.2 s (each
 * class four times the last), and how many took longer. What is short is measured now and then: SUM and the counts are
 * those of what was measured.
 *
 * Programs skip lines that they do not know. The future is the caller's: free it with tc_future_free(), also before the
 * answer is there. Threads are as for tc_endpoint_call().
 * TC_ERR_BUSY: the peer has not answered an earlier question on this connection; wait for that answer, and ask again.
 * TC_ERR_DISCONNECTED and what else ended the connection: connect again. TC_ERR_CLOSED: this node is being destroyed.
 * TC_ERR_LIMIT: too much waits for the peer to read it; poll, and ask again. TC_ERR_NO_MEMORY.
 * The future ends with TC_ERR_TIMEOUT: no answer within the deadline, for instance because a long ifunc runs on the peer's
 * thread; ask again when the answer may have come. TC_ERR_DENIED: this node may not connect there, and was connected to;
 * the peer's keyring must have its key. TC_ERR_DISCONNECTED: the peer was lost. */
TC_API tc_status_t tc_endpoint_ask_statistics(tc_endpoint_t *endpoint, uint32_t deadline_ms, tc_future_t **future);

#ifdef __cplusplus
}
#endif
#endif
