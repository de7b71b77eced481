/* SPDX-License-Identifier: Apache-2.0
 * Needs a function that the target's application would have to export (built with --extern). */
#include <threechains/ifunc.h>

void not_exported_anywhere(void);

void needs_symbol_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload;
  (void)payload_size;
  (void)target_args;
  not_exported_anywhere();
}
