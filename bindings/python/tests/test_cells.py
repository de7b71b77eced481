# SPDX-License-Identifier: Apache-2.0
"""Nodes whose code runs in cells: what crashes there costs its call alone."""

import re
import struct

import numpy as np
import pytest
import threechains as tc

CRASH = """
#include <threechains/ifunc.h>
static int *volatile nowhere = 0;
void crash_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)target_args;
  if (size == 0) *nowhere = 1;
  tc_reply(payload, size);
}
"""


@pytest.fixture(scope="module")
def isolated():
    with tc.LocalCluster(2, isolate="all") as nodes:
        yield nodes


def test_a_c_ifunc_answers_from_a_cell_of_each_node(isolated, echo, who):
    assert [struct.unpack("I", isolated.submit(who, node=node).result()) for node in range(2)] == [(0,), (1,)]
    assert isolated.submit(echo, b"x" * 100_000).result() == b"x" * 100_000


def test_a_crash_is_an_exception_that_says_what_crashed_and_the_next_call_is_answered(isolated):
    crash = tc.ifunc.from_c(CRASH)
    for node in (0, 1, 1, 0):
        future = isolated.submit(crash, b"", node=node)
        with pytest.raises(tc.CallCrashed, match=r"signal 11 .*at address 0x0.*in crash_main\+0x") as raised:
            future.result()
        assert (raised.value.status, raised.value.node) == (tc.Status.CRASHED, node)
        assert re.search(r"ifunc 'crash' \([0-9a-f]{12}\) ended its cell", str(raised.value))
        assert isolated.submit(crash, b"x", node=node).result() == b"x"


def test_a_numba_function_answers_from_a_cell_and_its_crash_is_told(isolated):
    pytest.importorskip("numba", reason="the extra [numba] is not installed")

    @tc.ifunc
    def item(a: tc.array(np.float64), i: int) -> float:
        return a[i]

    values = np.arange(5.0)
    assert isolated.submit(item, values, 3).result() == 3.0
    with pytest.raises(tc.CallCrashed, match=r"ifunc 'item' \([0-9a-f]{12}\) ended its cell, .* by signal 11"):
        isolated.submit(item, values, 1 << 44).result()  # indices are not checked unless asked for
    assert isolated.submit(item, values, 4).result() == 4.0


def test_a_cluster_with_a_wrong_word_for_isolate_says_which_there_are():
    with pytest.raises(tc.Error, match="none, auto, untrusted or all"):
        tc.LocalCluster(1, isolate="some")
