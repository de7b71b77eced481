/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, errors and the version. Include threechains.h, which has the conventions for all functions.
 */
#ifndef THREECHAINS_TYPES_H
#define THREECHAINS_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "version.h"

#if defined(__GNUC__)
#define TC_API __attribute__((visibility("default")))
#else
#define TC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tc_config tc_config_t;       /* how a node is to be */
typedef struct tc_option tc_option_t;       /* what is known about one option of a node */
typedef struct tc_statistic tc_statistic_t; /* what is known about one number that a node tells about itself */
typedef struct tc_node tc_node_t;           /* this process's place in the system: source and target in one */
typedef struct tc_endpoint tc_endpoint_t;   /* our end of the connection to one peer */
typedef struct tc_ifunc tc_ifunc_t;         /* a registered ifunc */
typedef struct tc_message tc_message_t;     /* an ifunc and a payload, ready to be sent any number of times */
typedef struct tc_future tc_future_t;       /* an answer that will come */

/* A sentence about the last call of this thread that did not return TC_OK. Never NULL. The library's; valid until this
 * thread's next call into the library. Any thread. */
TC_API const char *tc_error_message(void);

/* The status in words: "timeout". Never NULL, also for numbers that are no status. A constant. Any thread. */
TC_API const char *tc_status_name(tc_status_t status);

/* The version of the library that is loaded, as "0.1.0"; TC_VERSION_MAJOR and the others are those of the headers that
 * the program was compiled with. A constant. Any thread. */
TC_API const char *tc_version(void);

#ifdef __cplusplus
}
#endif
#endif
