/* SPDX-License-Identifier: Apache-2.0
 *
 * What only measurements need. The conventions are those of threechains.h.
 */
#ifndef THREECHAINS_BENCHMARK_H
#define THREECHAINS_BENCHMARK_H

#include "threechains.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sends a message as tc_endpoint_send() does, and sends the code along even if the peer has it: the uncached ifunc of
 * the paper. Errors and ownership are those of tc_endpoint_send(). */
TC_API tc_status_t tc_endpoint_send_with_code(tc_endpoint_t *endpoint, tc_message_t *message);

#ifdef __cplusplus
}
#endif
#endif
