/* SPDX-License-Identifier: Apache-2.0
 *
 * Every way in which Three-Chains can say no.
 *
 * The values travel on the wire inside REPLY and BYE frames, so they never change their meaning; new ones
 * are added at the end. Every status comes with a readable message (tc_error_message(), tc_future_error()).
 */
#ifndef THREECHAINS_STATUS_H
#define THREECHAINS_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tc_status {
  TC_OK = 0,
  TC_ERR_INVALID = 1,       /* the caller's arguments contradict each other or the documentation: mend the call */
  TC_ERR_NOT_FOUND = 2,     /* no such ifunc, file, node or named data: check the name and the search path */
  TC_ERR_MALFORMED = 3,     /* bytes are not what they claim to be: rebuild the bundle, or distrust the peer */
  TC_ERR_VERSION = 4,       /* the two sides speak different protocol, ABI or UCX versions: upgrade one */
  TC_ERR_TOO_LARGE = 5,     /* a payload, bundle or frame is over a limit: raise the limit or send less */
  TC_ERR_DENIED = 6,        /* the target's policy does not allow it: ask its operator */
  TC_ERR_UNRESOLVED = 7,    /* a symbol or library that the ifunc needs is not there: export or install it */
  TC_ERR_NO_SLICE = 8,      /* the bundle holds no code for the target's CPU: build it with --target */
  TC_ERR_COMPILE = 9,       /* the target could not compile or load the code: see the message */
  TC_ERR_TIMEOUT = 10,      /* the deadline passed first: the call may still run */
  TC_ERR_DISCONNECTED = 11, /* the peer went away: connect again */
  TC_ERR_BUSY = 12,         /* no room or not finished yet: progress the node and try again */
  TC_ERR_IFUNC = 13,        /* the ifunc itself called tc_fail(): its code and message are in the error */
  TC_ERR_LIMIT = 14,        /* hop, fan-out, execution or memory limit reached: see the message */
  TC_ERR_NO_MEMORY = 15,    /* out of memory */
  TC_ERR_IO = 16,           /* the operating system said no: the message holds its words */
  TC_ERR_UNSUPPORTED = 17,  /* not available in this build or on this machine */
  TC_ERR_CLOSED = 18,       /* the node or endpoint is closed or closing */
  TC_ERR_INTERNAL = 19,     /* a bug of ours: please report it with the message */
  TC_ERR_CRASHED = 20,      /* the ifunc ended the cell that it ran in: the message says where; mend its code */
  TC_ERR_CANCELED = 21      /* the caller took the call back with tc_future_cancel() */
} tc_status_t;

#ifdef __cplusplus
}
#endif
#endif
