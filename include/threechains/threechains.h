/* SPDX-License-Identifier: Apache-2.0
 *
 * Three-Chains: move functions, not only data, between the processes of a distributed system.
 *
 * Conventions, once for all of this file:
 *   - Handles are opaque. Arguments are scalars and pointers only, so that any language can call this.
 *   - A function that can fail returns tc_status_t. TC_OK is success; otherwise the out-parameters are untouched
 *     and tc_error_message() has a sentence about it, valid until this thread's next call into the library.
 *   - Threads: a node belongs to one thread at a time, and so do its endpoints, ifuncs, messages and futures:
 *     calls on them must not overlap. While a progress thread runs (tc_node_start_progress) any thread may call;
 *     the library then takes a lock of the node's. Different nodes are independent.
 *   - Times are in milliseconds. Every wait has a deadline: TC_ERR_TIMEOUT says that it passed. A time of 0 is a
 *     look that does not wait.
 *   - No function throws, and none aborts on what came from another process.
 *   - Strings are UTF-8, end with a zero byte, and are copied before a function returns.
 */
#ifndef THREECHAINS_THREECHAINS_H
#define THREECHAINS_THREECHAINS_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#define TC_VERSION_MAJOR 0
#define TC_VERSION_MINOR 1
#define TC_VERSION_PATCH 0

#if defined(__GNUC__)
#define TC_API __attribute__((visibility("default")))
#else
#define TC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tc_config tc_config_t;     /* how a node is to be; used up by nothing, free it */
typedef struct tc_node tc_node_t;         /* this process's place in the system: source and target in one */
typedef struct tc_endpoint tc_endpoint_t; /* our end of the connection to one peer */
typedef struct tc_ifunc tc_ifunc_t;       /* a registered ifunc */
typedef struct tc_message tc_message_t;   /* an ifunc and a payload, ready to be sent any number of times */
typedef struct tc_future tc_future_t;     /* an answer that will come */

/* ---- Errors ------------------------------------------------------------------------------------------------ */

/* A sentence about the last call of this thread that did not return TC_OK. Never NULL. */
TC_API const char *tc_error_message(void);
/* The status in words: "timeout". Never NULL. */
TC_API const char *tc_status_name(tc_status_t status);
/* "0.1.0" */
TC_API const char *tc_version(void);

/* ---- Configuration ----------------------------------------------------------------------------------------- */

TC_API tc_status_t tc_config_create(tc_config_t **config);
TC_API void tc_config_free(tc_config_t *config);

/* Sets one option. TC_ERR_INVALID names the key or value that makes no sense and what would.
 *
 *   name              label of this node in messages and logs          (host name and process number)
 *   listen            "ADDRESS:PORT" to accept peers on; port 0 picks one. "unix:PATH": processes of the same user on
 *                     this host, through shared memory alone. "none" accepts nobody                (127.0.0.1:0)
 *   advertise         "ADDRESS" or "ADDRESS:PORT" that peers are told to connect to (what follows from listen: with
 *                     0.0.0.0 or [::] the address of the first network interface that is up and no loopback)
 *   id                number of this node in its cluster               (0, or what the bootstrap gives it)
 *   cluster           addresses of all nodes of the cluster, by number, comma-separated: lets ifuncs forward
 *   bootstrap         how id and cluster are learnt instead, while the node starts (docs/bootstrap.md)      (none)
 *                       none       not at all
 *                       pmix       from the launcher that started this process: mpirun, srun --mpi=pmix
 *                       dir:PATH   by files in a directory that all nodes see; needs `nodes`
 *                       auto       pmix if a PMIx launcher started this process, else none
 *   nodes             how many nodes meet there
 *   bootstrap-timeout milliseconds in which all nodes must have come   (30000)
 *   transport         how frames travel on connections that this node starts (docs/transport.md; auto, or TC_TRANSPORT in
 *                     the environment)
 *                       auto       shm where the peer is a process of the same user on this host, else tcp
 *                       shm, tcp   that one alone
 *                       ucx        UCX's Active Messages, between nodes that all have this option; for networks on which
 *                                  everybody is trusted, as UCX asks nobody who they are. ucx-put: one-sided puts
 *   ucx-tls           which of UCX's transports, as UCX_TLS            (what the environment says, else all but sysv)
 *   ucx-devices       on which network devices, as UCX_NET_DEVICES; must be named here or there, unless ucx-tls has no
 *                     network                                          (what the environment says)
 *   trust             user: let in, and run code from, processes of the same user on this host; any: everybody who can
 *                     reach the address                                (user)
 *   path              directories with .ifunc files, colon-separated   (".", then $TC_IFUNC_PATH)
 *   allow-lib         a library that ifuncs may use, "*" for any; may be set many times            (none)
 *   allow-export      symbols that libraries sent here may export to other ifuncs: "hash64", "hash_*", and with "@HOST"
 *                     only those that come from that host; may be set many times                   (none)
 *   objects, bitcode  on or off: which slices this node runs           (on, on)
 *   tune              on or off: compile for this CPU in the background                            (on)
 *   warm-up           on or off: load the JIT when the node starts     (off)
 *   cache-dir         where compiled code persists; empty: nowhere     (empty)
 *   compile-at        "ADDRESS:PORT" of a node that compiles for this one what came as bitcode alone, when this one has no
 *                     LLVM (or bitcode is off); what it gives back runs here. docs/small-nodes.md           (nobody)
 *   compile-for       whom this node compiles for: none, user (processes of the same user on this host) or any (that
 *                     trust lets in); needs the program ifunc-toolchain              (none)
 *   compile-limit     milliseconds that compiling one ifunc for another node, or at one, may take  (10000)
 *   code-budget       bytes of code that are kept                      (67108864)
 *   max-message       largest payload or bundle accepted, in bytes     (268435456)
 *   message-memory    bytes of messages that may wait here, of all peers together   (1073741824)
 *   source-budget     bytes of code that was sent and is not registered any more, kept so that a peer which dropped it
 *                     can have it again; beyond it, such code must be registered again             (67108864)
 *   hops, fan-out     limits given to calls that start here            (64, 1024)
 *   execution-limit   milliseconds after which a running ifunc is reported as stuck; 0: never      (10000)
 *   ring-bytes        shared memory per peer and direction, a power of two         (262144)
 *   batch-bytes, window-bytes    of transport ucx: frames in one message, frames on their way     (131072, 1048576)
 *   log               off, error, warn, info or debug                  (warn)
 *   compiler          path of ifunc-toolchain, for compile-for         (in ../libexec/threechains of this library)
 *   jit-plugin, ucx-plugin, pmix-plugin    paths of libthreechains_jit.so, ..._ucx.so, ..._pmix.so (beside this library)
 */
TC_API tc_status_t tc_config_set(tc_config_t *config, const char *key, const char *value);

/* ---- Node -------------------------------------------------------------------------------------------------- */

/* Starts a node. `config` may be NULL for all defaults; it is copied. TC_ERR_IO when the address cannot be listened at,
 * TC_ERR_UNSUPPORTED when the transport cannot be had, with the system's or UCX's words; TC_ERR_DENIED when UCX would be
 * open to every network (ucx-devices). With a bootstrap it returns when all nodes know each other's addresses:
 * TC_ERR_TIMEOUT names who did not come; TC_ERR_INVALID, when options contradict what the launcher or others say;
 * TC_ERR_BUSY, a living node has our number. */
TC_API tc_status_t tc_node_create(const tc_config_t *config, tc_node_t **node);

/* Disconnects from all peers, fails all futures that still wait (TC_ERR_CLOSED) and frees the node and all its
 * endpoints, ifuncs and messages. Futures stay valid until freed. Not from inside an ifunc. NULL is ignored. */
TC_API void tc_node_destroy(tc_node_t *node);

/* Where peers can connect to: "127.0.0.1:41234"; empty when the node does not listen. Valid while the node is. */
TC_API const char *tc_node_address(const tc_node_t *node);

/* The number of this node in its cluster, as tc_id() tells ifuncs, and how many there are. Outside a cluster: its
 * configured id (or 0), and 1. */
TC_API uint32_t tc_node_id(const tc_node_t *node);
TC_API uint32_t tc_node_count(const tc_node_t *node);
/* Where node `number` of the cluster can be connected to, for tc_node_connect(); our own address for our own number.
 * Empty when there is no such node. Never NULL; valid while the node is. */
TC_API const char *tc_node_peer_address(const tc_node_t *node, uint32_t number);

/* Lets injected code call `function` by `symbol`, or use data at that address. The application keeps it alive as
 * long as the node is. For ifuncs that arrive from now on. */
TC_API tc_status_t tc_node_export(tc_node_t *node, const char *symbol, void *address);
/* Gives injected code data by name: tc_data(name). Kept alive by the application as long as the node is. NULL
 * `data` withdraws the name. */
TC_API tc_status_t tc_node_expose(tc_node_t *node, const char *name, void *data, size_t size);
/* What ifuncs get as target_args. Initially NULL. */
TC_API void tc_node_set_target_args(tc_node_t *node, void *target_args);

/* Runs frames that have come and moves frames that must go; never waits. `executed` (may be NULL) receives the
 * number of ifuncs that ran. */
TC_API tc_status_t tc_node_poll(tc_node_t *node, size_t *executed);
/* The same, and when there is nothing to do, sleeps until there is, at most `timeout_ms`. Costs no CPU. */
TC_API tc_status_t tc_node_wait(tc_node_t *node, uint32_t timeout_ms, size_t *executed);
/* Ends a tc_node_wait() of another thread, now or the next one: set the flag by which that thread's loop ends, then wake
 * it. From any thread, and from signal handlers. */
TC_API void tc_node_wake(tc_node_t *node);

/* A thread of the node's that polls and sleeps, so that the application need not. TC_ERR_INVALID when it runs. */
TC_API tc_status_t tc_node_start_progress(tc_node_t *node);
TC_API tc_status_t tc_node_stop_progress(tc_node_t *node);

/* One number about the node: "executed" (ifuncs run), "code-bytes", "codes", "code-loads", "code-evictions",
 * "tuned" (codes swapped for host-tuned ones), "rebinds" (of ifuncs to newer libraries), "retired" (pieces of code that
 * were replaced and are not freed yet), "cache-hits" (on-disk), "first-execution-ns" (last never-seen ifunc: last byte
 * received to end of its first execution), "load-ns" (its check and load or compile), "links", "dropped-links",
 * "refused-strangers" (peers that connected and were turned away before they had greeted), "needs" (times code was asked
 * for), "slice-requests" (times code for another processor was asked for, to pass it on), "compile-requests" (ifuncs that
 * compile-at was asked for), "compiled-for-others", "code-bytes-sent" (code given to peers), "failures" (calls that ended
 * badly), "late-answers" (for which nobody waited any more), "stuck" (calls reported for running longer than
 * execution-limit). TC_ERR_NOT_FOUND for other names. */
TC_API tc_status_t tc_node_stat(tc_node_t *node, const char *name, uint64_t *value);

/* ---- Endpoints --------------------------------------------------------------------------------------------- */

/* Connects to a node ("ADDRESS:PORT" or "unix:PATH") and waits until both sides have greeted. The endpoint lives until
 * tc_endpoint_close() or the node's end. TC_ERR_TIMEOUT, TC_ERR_DISCONNECTED (nobody there), TC_ERR_VERSION,
 * TC_ERR_DENIED (the peer does not trust us), TC_ERR_UNSUPPORTED (the transport asked for cannot be had). */
TC_API tc_status_t tc_node_connect(tc_node_t *node, const char *address, uint32_t timeout_ms, tc_endpoint_t **endpoint);
/* Flushes for at most `timeout_ms`, disconnects and frees the endpoint, whatever it returns. */
TC_API tc_status_t tc_endpoint_close(tc_endpoint_t *endpoint, uint32_t timeout_ms);
/* TC_OK while the peer is there, else why not. Does not progress the node. */
TC_API tc_status_t tc_endpoint_status(tc_endpoint_t *endpoint);
/* How frames travel to this peer: "shm", "tcp", "ucx" or "ucx-put". Valid while the endpoint is. */
TC_API const char *tc_endpoint_transport(const tc_endpoint_t *endpoint);
/* The peer's label and node number. Valid while the endpoint is. */
TC_API const char *tc_endpoint_peer(const tc_endpoint_t *endpoint);
TC_API uint32_t tc_endpoint_peer_id(const tc_endpoint_t *endpoint);

/* Pushes what was sent and waits until the peer has run all of it. TC_OK: every message accepted so far ran and
 * ended well. Otherwise the first failure since the last flush: what the ifunc or its target said (by name), or
 * TC_ERR_TIMEOUT, TC_ERR_DISCONNECTED. */
TC_API tc_status_t tc_endpoint_flush(tc_endpoint_t *endpoint, uint32_t timeout_ms);

/* ---- Ifuncs ------------------------------------------------------------------------------------------------ */

/* Registers the ifunc in NAME.ifunc, looked up along the node's path; a name with a slash is a file. A name that
 * is registered already gives the same handle while the file's content is the same, else a new one: changed code
 * never runs stale. Registered ifuncs can also be injected by name from code that runs here.
 * TC_ERR_NOT_FOUND lists the places that were tried; TC_ERR_MALFORMED. */
TC_API tc_status_t tc_ifunc_register(tc_node_t *node, const char *name, tc_ifunc_t **ifunc);
/* The same from the bytes of an .ifunc file, which are copied. */
TC_API tc_status_t tc_ifunc_register_memory(tc_node_t *node, const void *bundle, size_t size, tc_ifunc_t **ifunc);
/* Gives the handle back: one call for each registration. Messages made of it stay good. */
TC_API void tc_ifunc_deregister(tc_ifunc_t *ifunc);
TC_API const char *tc_ifunc_name(const tc_ifunc_t *ifunc);
/* 64 hexadecimal digits. Valid while the ifunc is registered. */
TC_API const char *tc_ifunc_content_id(const tc_ifunc_t *ifunc);

/* ---- Messages ---------------------------------------------------------------------------------------------- */

/* Makes a message: runs the ifunc's payload functions here on `source_args`, or copies `source_args` when it has
 * none. `source_args` is not needed afterwards. TC_ERR_TOO_LARGE, TC_ERR_IFUNC (payload_init returned not 0). */
TC_API tc_status_t tc_message_create(tc_ifunc_t *ifunc, void *source_args, size_t source_args_size,
                                     tc_message_t **message);
/* The payload, to be read or changed between sends. Valid until the message is freed. */
TC_API void *tc_message_payload(tc_message_t *message, size_t *size);
/* NULL is ignored. A message may be freed as soon as tc_endpoint_send() returned. */
TC_API void tc_message_free(tc_message_t *message);

/* Sends a message; nobody waits for its answer, but tc_endpoint_flush() reports if it failed. The payload is copied
 * before it returns. The first send after a poll leaves at once; those that follow are coalesced and leave with the next
 * poll, wait or flush, or when a batch is full. Frames to one endpoint run in the order in which they were sent.
 * When the peer is behind, waits for room up to the endpoint's send timeout (1000 ms, tc_endpoint_set_timeout).
 * TC_ERR_BUSY: still no room, and the message was not accepted. TC_ERR_DISCONNECTED, TC_ERR_TOO_LARGE. */
TC_API tc_status_t tc_endpoint_send(tc_endpoint_t *endpoint, tc_message_t *message);
/* Sends `count` messages in the order of `messages`: the same as tc_endpoint_send() on each, but cheaper, as they become
 * visible to the peer together. `sent` (may be NULL) receives how many were accepted: all with TC_OK, else those before
 * the first that was not, whose error it returns. */
TC_API tc_status_t tc_endpoint_send_many(tc_endpoint_t *endpoint, tc_message_t *const *messages, size_t count,
                                         size_t *sent);
TC_API void tc_endpoint_set_timeout(tc_endpoint_t *endpoint, uint32_t timeout_ms);

/* Sends a message and asks for its answer, to come within `deadline_ms` (0: no deadline; the peer's loss still
 * ends it). The future is the caller's: free it with tc_future_free(), also before the answer is there. */
TC_API tc_status_t tc_endpoint_call(tc_endpoint_t *endpoint, tc_message_t *message, uint32_t deadline_ms,
                                    tc_future_t **future);

/* ---- Futures ----------------------------------------------------------------------------------------------- */

/* Waits at most `timeout_ms`, progressing the node, and returns the call's own status: TC_OK, or why it failed,
 * with tc_future_error(). TC_ERR_BUSY: no answer yet, wait again. */
TC_API tc_status_t tc_future_wait(tc_future_t *future, uint32_t timeout_ms);
/* Is the answer there? 1 or 0. Does not progress the node. */
TC_API int tc_future_ready(const tc_future_t *future);
/* The bytes given to tc_reply(). Valid until the future is freed; NULL while there are none. */
TC_API const void *tc_future_bytes(const tc_future_t *future, size_t *size);
/* What went wrong, naming ifunc, node and cause; "" when nothing did. Valid until the future is freed. */
TC_API const char *tc_future_error(const tc_future_t *future);
/* The number given to tc_fail(). */
TC_API int32_t tc_future_code(const tc_future_t *future);
/* Which node answered. */
TC_API uint32_t tc_future_node(const tc_future_t *future);
TC_API void tc_future_free(tc_future_t *future);

#ifdef __cplusplus
}
#endif
#endif
