// SPDX-License-Identifier: Apache-2.0
//
// What UCX alone takes: a context and a worker, as a node has them, and nothing else. Prints the resident KiB.
#include <stdio.h>
#include <ucp/api/ucp.h>

int main(void) {
  const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
  const ucp_worker_params_t worker_params = {0};
  ucp_context_h context;
  ucp_worker_h worker;
  if (ucp_init(&params, NULL, &context) != UCS_OK) return 1;
  if (ucp_worker_create(context, &worker_params, &worker) != UCS_OK) return 1;
  FILE *const status = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  long resident = 0;
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "Rss: %ld", &resident) == 1) printf("%ld\n", resident);
  return resident != 0 ? 0 : 1;
}
