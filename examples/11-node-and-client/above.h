/* SPDX-License-Identifier: Apache-2.0
 *
 * What travels there and back. Both ends may be different machines, so the types have fixed sizes.
 */
#include <stdint.h>

struct question {
  double limit;
};
struct answer {
  uint64_t readings, above;
};
