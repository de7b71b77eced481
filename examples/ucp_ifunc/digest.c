// SPDX-License-Identifier: Apache-2.0
// An ifunc with libraries (digest.deps): at the source zlib packs the text; at the target a thread unpacks it and takes
// its SHA-256. The program that runs it links neither zlib nor libcrypto.
#include "digest.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

// As <zlib.h> and <openssl/sha.h> declare them; headers of this machine are not there for other ones.
unsigned long compressBound(unsigned long size);
int compress(unsigned char *to, unsigned long *to_size, const unsigned char *from, unsigned long size);
int uncompress(unsigned char *to, unsigned long *to_size, const unsigned char *from, unsigned long size);
unsigned char *SHA256(const unsigned char *bytes, size_t size, unsigned char *digest);

size_t digest_payload_bound(void *source_args, size_t source_args_size) {
  (void)source_args;
  return compressBound(source_args_size);
}

int digest_payload_init(void *source_args, size_t source_args_size, void *payload, size_t *payload_size) {
  unsigned long size = *payload_size;
  if (compress(payload, &size, source_args, source_args_size) != 0) return 1;
  *payload_size = size;  // it shrank
  return 0;
}

struct job {
  const unsigned char *packed;
  size_t packed_size;
  struct digest *result;
};

static unsigned char text[1 << 16];  // a global variable travels along, too

static void *unpack_and_digest(void *argument) {
  struct job *job = argument;
  unsigned long size = sizeof text;
  job->result->failed = uncompress(text, &size, job->packed, job->packed_size) != 0;
  SHA256(text, size, job->result->sha256);
  job->result->size = size;
  return NULL;
}

void digest_main(void *payload, size_t payload_size, void *target_args) {
  struct job job = {payload, payload_size, target_args};
  pthread_t thread;
  if (pthread_create(&thread, NULL, unpack_and_digest, &job) != 0) return;
  pthread_join(thread, NULL);
  ++job.result->count;
}
