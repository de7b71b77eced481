/* SPDX-License-Identifier: Apache-2.0 */
#include "zstd_decode_for_test.h"

#include "zstd_decode.h"

long example_zstd_decode(void *out, size_t capacity, const void *in, size_t size) {
  struct zstd_workspace workspace;
  return zstd_decode(&workspace, out, capacity, in, size);
}

long long example_zstd_content_size(const void *in, size_t size) { return zstd_content_size(in, size); }
