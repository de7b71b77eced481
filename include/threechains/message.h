/* SPDX-License-Identifier: Apache-2.0
 *
 * Ifuncs that this process can send, and messages made of them. Include threechains.h, which has the conventions.
 */
#ifndef THREECHAINS_MESSAGE_H
#define THREECHAINS_MESSAGE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Ifuncs ---------------------------------------------------------------------------------------------------- */

/* Registers the ifunc in NAME.ifunc, looked up along the node's path (option path); a name with a slash or the ending
 * .ifunc is a file. ("Registered using its name, and a handle is returned": main paper, section III.A.)
 * A name that is registered already gives the same handle while the file's content is the same, else a new one, as
 * changed code has another content id. Registered ifuncs can also be injected by name from code that runs here.
 * The handle is the node's; give it back with tc_ifunc_free(), or let the node's end do so.
 * TC_ERR_NOT_FOUND lists the places that were tried. TC_ERR_MALFORMED, TC_ERR_VERSION: the file is no bundle that this
 * version reads; build it again. TC_ERR_NO_SLICE, TC_ERR_UNRESOLVED, TC_ERR_COMPILE: its payload functions cannot be
 * loaded here. */
TC_API tc_status_t tc_ifunc_register(tc_node_t *node, const char *name, tc_ifunc_t **ifunc);
/* The same from the bytes of an .ifunc file, which are copied. */
TC_API tc_status_t tc_ifunc_register_memory(tc_node_t *node, const void *bundle, size_t size, tc_ifunc_t **ifunc);

/* Gives the handle back: one call for each registration. Messages made of it stay good. NULL is ignored. */
TC_API void tc_ifunc_free(tc_ifunc_t *ifunc);

/* The name under which it was built. The ifunc's; valid while it is registered. Any thread. */
TC_API const char *tc_ifunc_name(const tc_ifunc_t *ifunc);
/* What the code is known by everywhere: 64 hexadecimal digits. The ifunc's; valid while it is registered. Any thread. */
TC_API const char *tc_ifunc_content_id(const tc_ifunc_t *ifunc);

/* ---- Messages -------------------------------------------------------------------------------------------------- */

/* Makes a message: runs the ifunc's payload functions on `source_args`, or copies `source_args` when it has none (2021
 * paper, section 3.1). The library itself does not write to `source_args`, and does not need them afterwards; payload
 * functions get the pointer as it is. The payload is built at the alignment that the ifunc asks for by TC_PAYLOAD_ALIGN.
 * The message is the caller's: free it with tc_message_free() before the node's end.
 * TC_ERR_TOO_LARGE: over option max-message. TC_ERR_IFUNC: payload_init returned other than 0, and the message says what.
 * TC_ERR_MALFORMED: it made more bytes than its bound. TC_ERR_NO_MEMORY. */
TC_API tc_status_t tc_message_create(tc_ifunc_t *ifunc, const void *source_args, size_t source_args_size,
                                     tc_message_t **message);

/* The same without a copy, for large payloads: where the ifunc has no payload functions, `source_args` are the payload
 * themselves, and each send reads them as they are then. Fewer than 24 bytes are copied all the same:
 * tc_message_payload() says where the payload is. They stay the caller's, who keeps them in place until the message is
 * freed. Errors as above. */
TC_API tc_status_t tc_message_create_in_place(tc_ifunc_t *ifunc, const void *source_args, size_t source_args_size,
                                              tc_message_t **message);

/* The payload, to be read or changed between sends; `size` (may be NULL) receives its bytes. The message's; valid until
 * it is freed. Of a message that was made in place, the caller's own: to be changed only where the caller may. */
TC_API void *tc_message_payload(tc_message_t *message, size_t *size);

/* A message may be freed as soon as the function that sent it has returned. NULL is ignored. */
TC_API void tc_message_free(tc_message_t *message);

#ifdef __cplusplus
}
#endif
#endif
