/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API of the papers (2021 "UCX Programming Interface for Remote Function Injection and Invocation", Listings
 * 1.1-1.4; 2022 "Three-Chains"), for programs that own their UCX context, workers, endpoints, memory and polling loop.
 *
 *     cc -include threechains/ucp_ifunc.h program.c $(pkg-config --cflags --libs ucp_ifunc ucx)
 *
 * What is here is the 2022 form; -DTHREECHAINS_UCP_IFUNC_2021 gives the 2021 one. docs/ucp-ifunc.md has the reference
 * with examples, and what differs from the papers' prototype.
 *
 * Threads: everything may be called from any thread that may use the endpoint or worker given. Calls that UCX itself
 * wants serialised for an endpoint or worker (UCS_THREAD_MODE_SINGLE) want that here too.
 * Errors are UCX's statuses; ucp_ifunc_error() says in words what went wrong. Out-parameters are untouched then, but for
 * handles of ifuncs and messages, which are NULL: to free them is harmless.
 */
#ifndef THREECHAINS_UCP_IFUNC_H
#define THREECHAINS_UCP_IFUNC_H

#include <stddef.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A registered ifunc, of one context. */
typedef struct ucp_ifunc *ucp_ifunc_h;

/* A message: an ifunc and its payload. Passed by value; the frame is the library's until ucp_ifunc_msg_free(). */
typedef struct ucp_ifunc_msg {
  ucp_ifunc_h ifunc_h;
  void *frame;       /* as it is sent the first time: header, payload, code */
  size_t frame_size; /* of all that: the room it needs in a slot */
} ucp_ifunc_msg_t;

typedef struct ucp_ifunc_reg_param {
  char *name;  /* the ifunc's: its file is NAME.ifunc, or NAME.TRIPLE.bc, in $UCX_IFUNC_LIB_DIR (/usr/lib) */
  int pure;    /* taken for the sake of old programs, and without effect */
  int llvm_bc; /* 0: frames carry machine code alone, when the ifunc has any; else bitcode too */
} ucp_ifunc_reg_param_t;

/* Bitcode for one target, in memory. */
typedef struct ucp_llvm_bc {
  char *triple;
  void *bc;
  uint32_t size;
} ucp_llvm_bc_t;

/* ---- Source side ------------------------------------------------------------------------------------------- */

#ifndef THREECHAINS_UCP_IFUNC_2021
/* Looks an ifunc up by name and makes it ready to be sent from `context`. A name that is registered already gives
 * UCS_OK and the first handle; each registration wants one ucp_deregister_ifunc(). A context that received an ifunc of
 * that name, and has no file of it, can pass it on: then the source args are the payload.
 * UCS_ERR_NO_ELEM: there is no such file. UCS_ERR_INVALID_PARAM: it is damaged. */
ucs_status_t ucp_register_ifunc(ucp_context_h context, ucp_ifunc_reg_param_t param, ucp_ifunc_h *ifunc_p);
#endif

/* The same from bitcode in memory: `n` modules, each for another target, and the `n_deps` shared libraries that they
 * use at the target ("z", "libz.so.1"). Everything is copied. Needs the toolchain (ifunc-toolchain) installed. */
ucs_status_t ucp_register_ifunc_im(ucp_context_h context, ucp_ifunc_reg_param_t param, ucp_llvm_bc_t *bcs, int n,
                                   char **deps, int n_deps, ucp_ifunc_h *ifunc_p);

/* Messages made before stay good. */
void ucp_deregister_ifunc(ucp_context_h context, ucp_ifunc_h ifunc_h);

/* Runs the ifunc's payload functions on the source args, which are the payload if it has none.
 * UCS_ERR_NO_MEMORY; UCS_ERR_CANCELED: its payload_init returned other than 0. */
ucs_status_t ucp_ifunc_msg_create(ucp_ifunc_h ifunc_h, void *source_args, size_t source_args_size,
                                  ucp_ifunc_msg_t *msg_p);

/* The payload inside the frame, to be read or changed while the message is not being sent. `payload_size` may be NULL. */
ucs_status_t ucp_ifunc_msg_get_payload_ptr(ucp_ifunc_msg_t *msg_p, void **payload, size_t *payload_size);

/* Not before a send of it that returned UCS_INPROGRESS is flushed. */
void ucp_ifunc_msg_free(ucp_ifunc_msg_t msg);

/* Writes the message into the target's memory. The first time that an ifunc goes to an endpoint its code goes along;
 * later only header and payload. Statuses as ucp_put_nbi: UCS_OK, the message may be changed and sent again;
 * UCS_INPROGRESS, after a flush of endpoint or worker; or an error, and nothing runs at the target.
 * The slot must be free: a frame that was not polled yet is overwritten. */
ucs_status_t ucp_ifunc_send_nbix(ucp_ep_h ep, ucp_ifunc_msg_t msg, uint64_t remote_addr, ucp_rkey_h rkey);

/* The peer behind this endpoint holds nothing of ours any more (it restarted): code goes along again. */
void ucp_ifunc_forget(ucp_ep_h ep);

/* ---- Target side ------------------------------------------------------------------------------------------- */

#ifndef THREECHAINS_UCP_IFUNC_2021
/* Runs the ifunc whose frame lies at `buffer`, if there is one, and frees the slot just before it runs. Without a frame
 * it progresses `worker` once (NULL: it does not). The payload is in the slot, at a multiple of 16 when the slot is;
 * payloads of up to 256 bytes, and those that want more alignment, are copied out of it.
 *   UCS_OK                    an ifunc ran
 *   UCS_ERR_NO_MESSAGE        nothing has come
 *   UCS_ERR_NO_ELEM           the frame names code that this context does not hold: its sender has to forget us
 *   UCS_ERR_BUFFER_TOO_SMALL  the frame says it is longer than `buffer_size`
 *   UCS_ERR_INVALID_PARAM     the frame or its code is damaged
 *   UCS_ERR_UNSUPPORTED       the code has nothing for this machine, or uses a symbol that is not there
 *   UCS_ERR_REJECTED          the code uses a library or symbol that UCP_IFUNC_ALLOW leaves out
 *   UCS_ERR_CANCELED          the ifunc ran and called tc_fail()
 * After each of the errors the slot is free again, and why is in the log. */
ucs_status_t ucp_poll_ifunc(ucp_context_h context, void *buffer, size_t buffer_size, void *target_args,
                            ucp_worker_h worker);
#endif

/* ---- Without slots: the send-receive form that the 2021 paper announces (section 5.1) ----------------------- */

/* From now on ucp_worker_progress(worker) runs the ifuncs that arrive as Active Message `am_id`, with `target_args`.
 * What goes wrong with one is in the log. The context needs UCP_FEATURE_AM. */
ucs_status_t ucp_ifunc_am_register(ucp_worker_h worker, ucp_context_h context, unsigned am_id, void *target_args);

/* Sends the message as Active Message `am_id`: no slot, no rkey, no polling call. Returns and takes `param` as
 * ucp_am_send_nbx does; the message may be changed or freed when the send is complete. */
ucs_status_ptr_t ucp_ifunc_am_send_nbx(ucp_ep_h ep, unsigned am_id, ucp_ifunc_msg_t msg,
                                       const ucp_request_param_t *param);

/* ---- Libraries: ifuncs that define functions and data for other ifuncs (docs/libraries.md) ------------------ */

/* Lets libraries that arrive in this context export symbols to ifuncs there: "hash", or "hash_*"; several with commas. None
 * may until this is called, or UCP_IFUNC_ALLOW_EXPORT says so in the same form. Frames do not say who sent them: the rule
 * holds for everybody who can write to a slot that is polled for this context.
 * UCS_ERR_INVALID_PARAM: it is no such rule; those before it hold. */
ucs_status_t ucp_ifunc_allow_export(ucp_context_h context, const char *rule);

/* A number about the code that this context received: "codes" and "code-bytes" that are held now, "code-loads", "rebinds"
 * (of ifuncs to newer libraries), "retired" (pieces of old code that calls in progress may still be in), "tuned".
 * UCS_ERR_NO_ELEM: there is no such number. */
ucs_status_t ucp_ifunc_stat(ucp_context_h context, const char *name, uint64_t *value);

/* ---- Housekeeping ------------------------------------------------------------------------------------------ */

/* What went wrong in this thread's last call that failed: a sentence, valid until its next one. */
const char *ucp_ifunc_error(void);

/* Forgets everything about a context: registrations, code that it received. None of it may be running. */
void ucp_ifunc_release(ucp_context_h context);
/* A worker of a context came, or is about to go. */
void ucp_ifunc_note_worker(ucp_context_h context, ucp_worker_h worker);
void ucp_ifunc_forget_worker(ucp_worker_h worker);

/* ---- The 2021 form ----------------------------------------------------------------------------------------- */

ucs_status_t ucp_ifunc_2021_register(ucp_context_h context, const char *ifunc_name, ucp_ifunc_h *ifunc_p);
ucs_status_t ucp_ifunc_2021_poll(ucp_context_h context, void *buffer, size_t buffer_size, void *target_args);

#ifdef THREECHAINS_UCP_IFUNC_2021
#define ucp_register_ifunc ucp_ifunc_2021_register
#define ucp_poll_ifunc ucp_ifunc_2021_poll /* progresses the workers that this thread created for the context */
#define ucp_ifunc_msg_send_nbix ucp_ifunc_send_nbix
#endif

/* UCX does not say which context a worker belongs to, nor when one goes; and it uses addresses again. So these calls of
 * the program tell us besides. Code that is compiled without this header calls the functions above itself. */
#ifndef THREECHAINS_UCP_IFUNC_NO_WRAP
static inline ucs_status_t ucp_ifunc_wrap_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
                                                        ucp_worker_h *worker_p) {
  ucp_worker_params_t asked = *params;
  ucs_status_t status;
  /* Payloads of Active Messages at a multiple of 16, as ifuncs want them: else they are copied. */
  if ((asked.field_mask & UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT) == 0) {
    asked.field_mask |= UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
    asked.am_alignment = 16;
  }
  status = ucp_worker_create(context, &asked, worker_p);
  if (status == UCS_OK) ucp_ifunc_note_worker(context, *worker_p);
  return status;
}
static inline void ucp_ifunc_wrap_worker_destroy(ucp_worker_h worker) {
  ucp_ifunc_forget_worker(worker);
  ucp_worker_destroy(worker);
}
static inline ucs_status_t ucp_ifunc_wrap_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params,
                                                    ucp_ep_h *ep_p) {
  const ucs_status_t status = ucp_ep_create(worker, params, ep_p);
  if (status == UCS_OK) ucp_ifunc_forget(*ep_p);
  return status;
}
static inline void ucp_ifunc_wrap_cleanup(ucp_context_h context) {
  ucp_ifunc_release(context);
  ucp_cleanup(context);
}
#define ucp_worker_create ucp_ifunc_wrap_worker_create
#define ucp_worker_destroy ucp_ifunc_wrap_worker_destroy
#define ucp_ep_create ucp_ifunc_wrap_ep_create
#define ucp_cleanup ucp_ifunc_wrap_cleanup
#endif

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
