# SPDX-License-Identifier: Apache-2.0
"""Nodes with several threads (docs/threads.md). Calls prove that they run at the same time by waiting for each other."""

import threading
import time
from typing import Annotated

import numpy as np
import pytest
import threechains as tc

pytest.importorskip("numba", reason="the extra [numba] is not installed")
ATOMICS = """
#include <threechains/ifunc.h>
static uint64_t *board(int place) {
  uint64_t *const data = tc_data("board", 0);
  return data + place;
}
static uint64_t add(int place, int64_t much) { return __atomic_add_fetch(board(place), much, __ATOMIC_SEQ_CST); }
static uint64_t get(int place) { return __atomic_load_n(board(place), __ATOMIC_SEQ_CST); }
"""
# Each call waits until as many run as the payload says.
MEET = ATOMICS + """
TC_CONCURRENT;
void meet_main(void *payload, size_t size, void *target_args) {
  (void)size, (void)target_args;
  add(0, 1);
  while (get(0) < *(uint64_t *)payload) {}
  tc_reply(payload, 8);
}
"""
# Runs until `release` has run as often as the payload says.
HOLD = ATOMICS + """
TC_CONCURRENT;
void hold_main(void *payload, size_t size, void *target_args) {
  (void)size, (void)target_args;
  add(2, 1);
  while (get(1) < *(uint64_t *)payload) {}
}
"""
RELEASE = ATOMICS + """
void release_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)size, (void)target_args;
  add(1, 1);
}
"""
# Ordinary, and long enough for another thread. Answers with the number of its calls that run now.
ALONE = ATOMICS + """
void alone_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)size, (void)target_args;
  uint64_t most = add(3, 1);
  for (volatile int i = 0; i < 200000; ++i)
    if (get(3) > most) most = get(3);
  add(3, -1);
  tc_reply(&most, sizeof most);
}
"""
FIND = ATOMICS + """
void find_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)size, (void)target_args;
  if (tc_data("board", 0) == 0) tc_reply("nothing", 7);
}
"""
MEET, HOLD, RELEASE, ALONE, FIND = (tc.ifunc.from_c(source) for source in (MEET, HOLD, RELEASE, ALONE, FIND))


@tc.ifunc(concurrent=True)
def square(x: float) -> float:
    return x * x


@tc.ifunc
def cube(x: float) -> float:
    return x * x * x


@tc.ifunc
def total(board: Annotated[np.ndarray, tc.data("board", np.uint64)]) -> int:
    return board.sum()


def number(value):
    return np.uint64(value).tobytes()


@pytest.fixture
def threads():
    """A node with three threads beside its own."""
    with tc.LocalCluster(1, data={"board": np.zeros(8, np.uint64)}, threads=4) as nodes:
        yield nodes


def test_concurrent_calls_run_at_the_same_time(threads):
    futures = [threads.submit(MEET, number(3)) for _ in range(3)]
    assert [bytes(future.result()) for future in futures] == [number(3)] * 3


def test_other_calls_are_answered_while_concurrent_code_runs(threads):
    held = [threads.submit(HOLD, number(1)) for _ in range(2)]
    assert list(threads.map(square, [1.0, 2.0, 3.0])) == [1.0, 4.0, 9.0]
    assert list(threads.map(cube, [1.0, 2.0, 3.0])) == [1.0, 8.0, 27.0]
    assert not any(future.done() for future in held)
    threads.submit(RELEASE).result()
    assert [len(future.result()) for future in held] == [0, 0]


def test_ordinary_calls_never_run_beside_each_other(threads):
    found = []

    def ask():
        with tc.Cluster(threads.addresses) as mine:  # a link of its own
            found.extend(bytes(future.result()) for future in [mine.submit(ALONE) for _ in range(10)])

    callers = [threading.Thread(target=ask) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [number(1)] * 30


def test_a_flush_waits_for_calls_on_other_threads(threads):
    threads.send(HOLD, number(1))
    with pytest.raises(tc.Error) as caught:
        threads.flush(0.2)
    assert caught.value.status == tc.Status.TIMEOUT
    with tc.Cluster(threads.addresses) as others:
        others.submit(RELEASE).result()
    threads.flush()


def test_a_node_in_python_takes_its_number_of_threads():
    board = np.zeros(8, np.uint64)
    with tc.Node(data={"board": board}, threads=3) as server, tc.Cluster([server.address]) as cluster:
        futures = [cluster.submit(MEET, number(2)) for _ in range(2)]
        assert [bytes(future.result()) for future in futures] == [number(2)] * 2
        assert cluster.submit(total).result() == 2 and board[0] == 2
    with pytest.raises(tc.Error, match="threads"):
        tc.Node(threads=0)


def test_withdrawn_data_stays_in_place_for_the_calls_that_use_it():
    board = np.zeros(8, np.uint64)
    with tc.Node(data={"board": board}, threads=3) as server, tc.Cluster([server.address]) as cluster:
        held = cluster.submit(HOLD, number(1))
        withdrawing = threading.Thread(target=server.withdraw, args=("board",))
        try:
            assert reaches(lambda: board[2] == 1)
            withdrawing.start()
            assert reaches(lambda: cluster.submit(FIND).result() == b"nothing")
            assert withdrawing.is_alive() and not held.done()
        finally:
            board[1] = 1  # or the node would not end
        held.result()
        withdrawing.join()


def reaches(condition):
    """Is it so within five seconds?"""
    end = time.monotonic() + 5
    while not condition():
        if time.monotonic() > end:
            return False
    return True
