/* SPDX-License-Identifier: Apache-2.0 */
/* What each of these programs needs of UCX before it can begin: a context, a worker, memory that others may write to,
 * and an endpoint to each of the other processes. Nothing in here knows of ifuncs. */
#ifndef PEER_H
#define PEER_H

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define CHECK(expression)                                                                                 \
  do {                                                                                                    \
    const ucs_status_t check_ = (expression);                                                             \
    if (check_ != UCS_OK) {                                                                               \
      fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #expression, ucs_status_string(check_), \
              ucp_ifunc_error());                                                                         \
      exit(1);                                                                                            \
    }                                                                                                     \
  } while (0)

struct local { /* this process */
  ucp_context_h context;
  ucp_worker_h worker;
  char* memory; /* mapped: others write to it */
  size_t size;
  ucp_mem_h mapped;
};

struct remote { /* another one */
  ucp_ep_h ep;
  uint64_t memory;
  ucp_rkey_h rkey;
};

/* `allocate`: UCX allocates the memory, so that a process of this host can store into it; else it is our own. */
static inline void local_open(struct local* me, size_t size, int allocate) {
  const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA | UCP_FEATURE_AM};
  const ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                             .thread_mode = UCS_THREAD_MODE_SINGLE};
  CHECK(ucp_init(&params, NULL, &me->context));
  CHECK(ucp_worker_create(me->context, &worker_params, &me->worker));
  ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS,
                              .length = size};
  if (allocate) {
    map.field_mask |= UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    map.flags = UCP_MEM_MAP_ALLOCATE;
  } else if (posix_memalign(&map.address, 4096, size) != 0) {
    exit(1);
  }
  CHECK(ucp_mem_map(me->context, &map, &me->mapped));
  ucp_mem_attr_t attributes = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
  CHECK(ucp_mem_query(me->mapped, &attributes));
  me->memory = attributes.address;
  me->size = size;
  memset(me->memory, 17, size); /* whatever: it must not look like a message */
}

static inline void local_close(struct local* me) {
  ucp_mem_unmap(me->context, me->mapped);
  ucp_worker_destroy(me->worker);
  ucp_cleanup(me->context);
}

static inline double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Of a wait: lets others run, and ends the program rather than wait for ever. `begin`: when it began to wait. */
static inline void wait_a_little(double begin, const char* what) {
  enum { limit = 60 };
  sched_yield();
  if (seconds() - begin < limit) return;
  fprintf(stderr, "process %d has waited for %s for %d s\n", (int)getpid(), what, limit);
  exit(1);
}

static inline void tell(int fd, const void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t now = write(fd, (const char*)bytes + done, size - done);
    if (now <= 0) exit(1);
    done += (size_t)now;
  }
}

/* Progresses meanwhile: UCX may need us for its own messages. */
static inline void hear(struct local* me, int fd, void* bytes, size_t size) {
  const double begin = seconds();
  for (size_t done = 0; done < size;) {
    const ssize_t now = recv(fd, (char*)bytes + done, size - done, MSG_DONTWAIT);
    if (now == 0) exit(1);
    if (now > 0) done += (size_t)now;
    if (now < 0 && ucp_worker_progress(me->worker) == 0) wait_a_little(begin, "word from the other process");
  }
}

static inline void tell_block(int fd, const void* bytes, size_t size) {
  const uint64_t length = size;
  tell(fd, &length, sizeof length);
  tell(fd, bytes, size);
}

static inline void* hear_block(struct local* me, int fd) {
  uint64_t length;
  hear(me, fd, &length, sizeof length);
  void* bytes = malloc(length);
  hear(me, fd, bytes, length);
  return bytes;
}

/* Both sides of a socket call this. */
static inline void remote_open(struct remote* other, struct local* me, int fd) {
  ucp_address_t* address;
  void* packed;
  size_t address_size, packed_size;
  const uint64_t memory = (uint64_t)(uintptr_t)me->memory;
  CHECK(ucp_worker_get_address(me->worker, &address, &address_size));
  CHECK(ucp_rkey_pack(me->context, me->mapped, &packed, &packed_size));
  tell_block(fd, address, address_size);
  tell_block(fd, packed, packed_size);
  tell(fd, &memory, sizeof memory);
  ucp_worker_release_address(me->worker, address);
  ucp_rkey_buffer_release(packed);

  void* their_address = hear_block(me, fd);
  void* their_key = hear_block(me, fd);
  hear(me, fd, &other->memory, sizeof other->memory);
  const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = their_address};
  CHECK(ucp_ep_create(me->worker, &params, &other->ep));
  CHECK(ucp_ep_rkey_unpack(other->ep, their_key, &other->rkey));
  free(their_address);
  free(their_key);
}

static inline void finish(struct local* me, ucs_status_ptr_t request) {
  if (request == NULL) return;
  if (UCS_PTR_IS_ERR(request)) CHECK(UCS_PTR_STATUS(request));
  ucs_status_t status;
  const double begin = seconds();
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
    if (ucp_worker_progress(me->worker) == 0) wait_a_little(begin, "UCX to finish a request");
  ucp_request_free(request);
  CHECK(status);
}

static inline void flush(struct local* me, struct remote* other) {
  const ucp_request_param_t param = {0};
  finish(me, ucp_ep_flush_nbx(other->ep, &param));
}

/* The last thing on a connection: nobody closes before all are done. */
static inline void remote_close(struct remote* other, struct local* me, int fd) {
  char done = 1;
  flush(me, other);
  tell(fd, &done, 1);
  hear(me, fd, &done, 1);
  ucp_rkey_destroy(other->rkey);
  const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
  ucs_status_ptr_t request = ucp_ep_close_nbx(other->ep, &param);
  if (UCS_PTR_IS_PTR(request)) finish(me, request);
}

#ifndef THREECHAINS_UCP_IFUNC_2021
/* Polls the slot until what runs there has brought `*count` to `wanted`. Where there are fewer cores than
 * processes, the other one needs ours now and then. */
static inline void poll_until(struct local* me, void* slot, size_t size, void* target_args, volatile uint64_t* count,
                              uint64_t wanted) {
  double begin = 0;
  for (unsigned polls = 1; *count < wanted; ++polls) {
    const ucs_status_t status = ucp_poll_ifunc(me->context, slot, size, target_args, me->worker);
    if (status != UCS_ERR_NO_MESSAGE) CHECK(status);
    if (polls % 1000 != 0) continue;
    if (begin == 0) begin = seconds();
    wait_a_little(begin, "a message");
  }
}

#endif

static inline void follow_child(int signal_number) {
  int status = 0;
  (void)signal_number;
  /* One that ended well is left for join(). */
  siginfo_t info = {0};
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
  if (info.si_code == CLD_EXITED && info.si_status == 0) return;
  (void)wait(&status);
  _exit(1);
}

/* Starts the other process; which of the two we are. `fd` leads to the other. Before any call to UCX. */
static inline int split(int* fd) {
  int both[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0) exit(1);
  const pid_t parent = getpid();
  const int child = fork() == 0;
  /* One that polls would wait for ever for another that has given up. */
  if (child && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) exit(1);
  if (!child) signal(SIGCHLD, follow_child);
  *fd = both[child];
  close(both[!child]);
  return child;
}

/* The exit status of the program: that of the other process too. */
static inline int join(int child) {
  int status = 0;
  if (child) return 0;
  return wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

#endif
