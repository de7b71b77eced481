/* SPDX-License-Identifier: Apache-2.0 */
/* Listing 1.3 of the 2021 paper, as it is printed. */
/* clang-format off */
#include <paq8px.h>

size_t paq8px_payload_get_max_size(void *source_args,
                                   size_t source_args_size) {
    return est_output_size(source_args, source_args_size);
}

int paq8px_payload_init(void *payload,
                       size_t payload_size,
                       void *source_args,
                       size_t source_args_size) {
    encode(payload, payload_size,
           source_args, source_args_size);
    return 0;
}

void paq8px_main(void *payload,
                 size_t payload_size,
                 void *target_args) {
    db_handler dbh = target_args;
    decode_insert(dbh, payload, payload_size);
}
