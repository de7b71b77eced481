/* SPDX-License-Identifier: Apache-2.0
 * The decoder, which is C, for its test, which is C++. */
#ifndef THREECHAINS_EXAMPLE_ZSTD_DECODE_FOR_TEST_H
#define THREECHAINS_EXAMPLE_ZSTD_DECODE_FOR_TEST_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
long example_zstd_decode(void* out, size_t capacity, const void* in, size_t size);
long long example_zstd_content_size(const void* in, size_t size);
#ifdef __cplusplus
}
#endif
#endif
