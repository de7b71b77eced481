# SPDX-License-Identifier: Apache-2.0
"""What an ifunc written in Python may call: all of ifunc.h, and functions of C."""

import time
from typing import Annotated, Any

import numpy as np
import pytest
import threechains as tc

pytest.importorskip("numba", reason="the extra [numba] is not installed")
from test_refusals import refusal  # noqa: E402


@pytest.fixture(scope="module")
def nodes():
    data = {"column": np.arange(10.0), "seen": np.zeros(2)}
    with tc.LocalCluster(2, data=data, allow_libs=["libm.so.6", "libc.so.6"]) as cluster:
        yield cluster


def test_an_array_that_came_goes_back_or_a_part_of_it(nodes):
    @tc.ifunc
    def sorted_part(a: tc.array(np.int32), count: int) -> tc.array(np.int32):
        for i in range(1, a.size):
            k = i
            while k > 0 and a[k] < a[k - 1]:
                a[k], a[k - 1] = a[k - 1], a[k]
                k -= 1
        return a[:count]

    answer = nodes.submit(sorted_part, [3, 1, 2], 2).result()
    assert answer.tolist() == [1, 2] and answer.dtype == np.int32
    assert nodes.submit(sorted_part, [], 0).result().tolist() == []


def test_a_part_of_the_targets_data_goes_back(nodes):
    @tc.ifunc
    def part(column: tc.data("column", np.float64), first: int, last: int):
        return column[first:last]

    assert nodes.submit(part, 3, 6).result().tolist() == [3, 4, 5]


def test_an_array_in_pieces_is_no_answer():
    def every_second(a: tc.array(np.int32)):
        return a[::2]

    assert "in one piece" in refusal(every_second).hint


def test_data_that_may_be_missing_is_empty_then(nodes):
    @tc.ifunc
    def sizes(column: tc.data("column", np.float64, optional=True), other: tc.data("none", np.float64, optional=True)):
        return column.size, other.size, tc.has_data("column"), tc.has_data("none")

    assert nodes.submit(sizes).result() == (10, 0, True, False)


def test_functions_of_c_are_called_with_numbers_and_arrays(nodes):
    hypot = tc.external("hypot", np.float64, np.float64, np.float64)
    memchr = tc.external("strnlen", np.uint64, tc.array(np.uint8), np.uint64)
    labs = tc.external("abs", np.int32, np.int32)

    @tc.ifunc(deps=["m", "c"])
    def calls(text: tc.array(np.uint8), a: int):
        return hypot(a, 4), memchr(text, 100), labs(-a)

    assert nodes.submit(calls, list(b"four\0more"), 3).result() == (5.0, 4, 3)
    with pytest.raises(RuntimeError, match="ifuncs"):
        hypot(3.0, 4.0)


def test_functions_of_c_are_checked_when_compiled():
    hypot = tc.external("hypot", np.float64, np.float64, np.float64)
    nowhere = tc.external("no_such_function", np.int64, np.int64)

    def wrong(a: float):
        return hypot(a)

    def undeclared(a: int):
        return nowhere(a)

    assert "is called with (float64)" in str(refusal(wrong))
    error = refusal(undeclared)
    assert error.symbol == "no_such_function" and "deps=" in error.hint
    with pytest.raises(tc.IfuncError, match="no library's name"):
        tc.ifunc(deps=["m\" ; x"])(undeclared)


def test_another_ifunc_goes_on_in_its_place(nodes):
    @tc.ifunc
    def finish(total: float, steps: int):
        return total, steps, tc.node_id()

    @tc.ifunc
    def note(value: float, seen: tc.data("seen", np.float64)):
        seen[0] = value

    @tc.ifunc(bundled=[finish, note])
    def start(total: float):
        if tc.inject(1, "note", total + 0.5) != 0 or tc.forward_as(1, "finish", total * 2, 7) != 0:
            raise tc.Failure(3, "it did not go on")
        return total, 0, tc.node_id()

    @tc.ifunc
    def noted(seen: tc.data("seen", np.float64)):
        return seen[0]

    assert nodes.submit(start, 1.5, node=0).result() == (3.0, 7, 1)
    end = time.monotonic() + 10
    while nodes.submit(noted, node=1).result() != 2.0:
        assert time.monotonic() < end


def test_an_ifunc_that_nobody_knows_is_not_found(nodes):
    @tc.ifunc
    def start(a: tc.array(np.uint8)):
        return tc.inject(1, "nobody_knows_it", a), tc.forward_as(77, "start", a)

    assert nodes.submit(start, [1, 2], node=0).result() == (int(tc.Status.NOT_FOUND),) * 2


def test_names_that_are_no_constants_are_refused():
    def sends(which: int):
        name = "a" if which else "b"
        return tc.inject(0, name, which)

    def logs(level: float):
        tc.log(level, "words")

    assert "a text that is written there" in str(refusal(sends))
    assert "a whole number first" in str(refusal(logs))


def test_a_line_goes_to_the_nodes_log(nodes):
    @tc.ifunc
    def tells(x: int):
        tc.log(2, "the price is unusual")
        return x

    assert nodes.submit(tells, 1).result() == 1
    end = time.monotonic() + 10
    while "the price is unusual" not in nodes.log():
        assert time.monotonic() < end, nodes.log()
        time.sleep(0.01)


def test_annotations_may_tell_type_checkers_something_else(nodes):
    @tc.ifunc
    def total(a: Annotated[Any, tc.array(np.float64)], column: Annotated[Any, tc.data("column", np.float64)]) \
            -> Annotated[float, "whatever"]:
        return a[0] + column[9]

    assert nodes.submit(total, [0.5]).result() == 9.5


def test_outside_of_ifuncs_they_say_that_they_are_for_ifuncs():
    for call in (tc.node_id, tc.node_count, lambda: tc.forward(0), lambda: tc.forward_as(0, "x"),
                 lambda: tc.inject(0, "x"), lambda: tc.has_data("x"), lambda: tc.log(0, "x")):
        with pytest.raises(RuntimeError, match="for ifuncs"):
            call()
