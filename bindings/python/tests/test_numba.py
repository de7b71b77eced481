# SPDX-License-Identifier: Apache-2.0
"""Python functions as ifuncs."""

import math
import struct
import subprocess

import numpy as np
import pytest
import threechains as tc

numba = pytest.importorskip("numba", reason="the extra [numba] is not installed")
PRICES = np.linspace(0, 100, 1001)


@pytest.fixture(scope="module")
def nodes():
    with tc.LocalCluster(2, data={"prices": PRICES}) as cluster:
        yield cluster


def test_numbers_go_and_a_number_comes_back(nodes):
    @tc.ifunc
    def scaled(x: np.float64, by: int) -> np.float64:
        return x * by

    assert nodes.submit(scaled, 1.5, 4).result() == 6.0
    with pytest.raises(TypeError, match="takes 2 arguments"):
        nodes.submit(scaled, 1.5)
    with pytest.raises(TypeError):
        nodes.submit(scaled, "a", 4)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?"])
def test_every_number_type_keeps_its_value(nodes, dtype):
    kind = np.dtype(dtype).type

    def same(x, y):
        return x

    same.__annotations__ = {"x": kind, "y": np.float32}
    value = {"b": True, "f": -1.25}.get(np.dtype(dtype).kind, 100)
    assert nodes.submit(tc.ifunc(same), value, 0.5).result() == value


def test_annotations_may_be_strings_that_name_what_is_local(nodes):
    import numpy as local

    @tc.ifunc
    def twice(x: "local.float64") -> "local.float64":
        return x * 2

    assert nodes.submit(twice, 4.0).result() == 8.0


def test_the_targets_data_is_an_array(nodes):
    @tc.ifunc
    def above(limit: float, prices: tc.data("prices", np.float64)):
        count, total = 0, 0.0
        for price in prices:
            if price > limit:
                count += 1
                total += price
        return count, total

    count, total = nodes.submit(above, 50.0).result()
    chosen = PRICES[PRICES > 50.0]
    assert count == len(chosen) and math.isclose(total, chosen.sum())


def test_numpys_reductions_and_slices_work(nodes):
    @tc.ifunc
    def digest(a: tc.array(np.float64)):
        return a.sum(), a[1:4].max(), a.mean(), np.sqrt(a[2]), len(a)

    values = np.array([1.0, 9.0, 4.0, 2.0, 16.0])
    assert nodes.submit(digest, values).result() == (32.0, 9.0, 6.4, 2.0, 5)


def test_arrays_and_numbers_travel_together(nodes):
    @tc.ifunc
    def weighted(a: tc.array(np.float32), w: float, b: tc.array(np.int16), out: tc.out(np.float64, 3)):
        for i in range(3):
            out[i] = a[i] * w + b[i]

    assert nodes.submit(weighted, [1, 2, 3], 10.0, [4, 5, 6]).result().tolist() == [14, 25, 36]
    assert nodes.submit(weighted, np.array([1, 2, 3.0]), 0.0, [7, 8, 9]).result().tolist() == [7, 8, 9]


def test_structured_arrays_travel(nodes):
    row = np.dtype([("id", np.int64), ("x", np.float64)])

    @tc.ifunc
    def best(rows: tc.array(row)):
        found = 0
        for i in range(len(rows)):
            if rows[i].x > rows[found].x:
                found = i
        return rows[found].id

    rows = np.array([(7, 1.0), (8, 3.0), (9, 2.0)], dtype=row)
    assert nodes.submit(best, rows).result() == 8


def test_a_large_answer_and_one_of_a_single_array(nodes):
    @tc.ifunc
    def squares(out: tc.out(np.int64, 10_000)):
        for i in range(out.size):
            out[i] = i * i

    for _ in range(2):
        assert np.array_equal(nodes.submit(squares, node=0).result(), np.arange(10_000) ** 2)


def test_it_knows_where_it_runs(nodes):
    @tc.ifunc
    def where():
        return tc.node_id(), tc.node_count()

    assert [future.result() for future in nodes.broadcast(where)] == [(0, 2), (1, 2)]


def test_it_travels_on_with_the_duty_to_answer(nodes):
    @tc.ifunc
    def hop(left: int, total: np.float32):
        if left > 0:
            tc.forward((tc.node_id() + 1) % tc.node_count(), left - 1, total + 1)
        return total, tc.node_id()

    @tc.ifunc
    def gather(seen: tc.array(np.int64)):
        at = seen[0]
        seen[at] = tc.node_id() + 100
        seen[0] += 1
        if at + 1 < len(seen):
            tc.forward((tc.node_id() + 1) % tc.node_count(), seen)
        return seen[1], seen[2], seen[3]

    assert nodes.submit(hop, 5, 0.5, node=0).result() == (5.5, 1)
    assert nodes.submit(hop, 0, 0.5, node=0).result() == (0.5, 0)
    assert nodes.submit(gather, [1, 0, 0, 0], node=1).result() == (101, 100, 101)


def test_a_njit_helper_comes_along(nodes):
    @numba.njit
    def helper(x):
        return x + 1

    @tc.ifunc
    def uses(x: float):
        return helper(x) * 2

    assert nodes.submit(uses, 2.0).result() == 6.0
    assert helper(1.0) == 2.0


@pytest.mark.parametrize("decorate", [numba.njit, numba.extending.register_jitable])
def test_a_helper_that_forwards_sends_what_the_ifunc_takes_that_uses_it(nodes, decorate):
    @decorate
    def onward(left, value):
        return tc.forward((tc.node_id() + 1) % tc.node_count(), left, value)

    @decorate
    def through(left, value):
        return onward(left, value)

    @tc.ifunc
    def real(left: int, value: float):
        if left > 0:
            onward(left - 1, 7)
        return value

    @tc.ifunc
    def whole(left: int, value: int):
        if left > 0:
            onward(left - 1, 7)
        return value

    @tc.ifunc
    def small(left: int, value: np.float32):
        if left > 0:
            through(left - 1, 7)
        return value

    for _ in range(2):
        for ifunc in (real, whole, small):
            assert nodes.submit(ifunc, 3, 1, node=0).result() == 7

    with pytest.raises(tc.IfuncError, match="takes .node, left."):
        @tc.ifunc
        def other(left: int):
            through(left, 7)


def test_a_small_global_array_is_frozen_into_the_code(nodes):
    table = np.array([2.0, 3.0, 5.0])

    @tc.ifunc
    def look(i: int):
        return table[i]

    assert nodes.submit(look, 2).result() == 5.0


def test_raise_becomes_a_remote_error(nodes):
    @tc.ifunc
    def picky(x: int):
        if x == 1:
            raise tc.Failure(7, "one is no number")
        if x == 2:
            raise ValueError("two neither")
        return x

    assert nodes.submit(picky, 3).result() == 3
    with pytest.raises(tc.RemoteError, match="one is no number") as caught:
        nodes.submit(picky, 1, node=1).result()
    assert (caught.value.code, caught.value.node, caught.value.ifunc) == (7, 1, "picky")
    with pytest.raises(tc.RemoteError, match="ValueError: two neither") as caught:
        nodes.submit(picky, 2).result()
    assert caught.value.code == -6


def test_bounds_are_checked_when_asked_for(nodes):
    @tc.ifunc(boundscheck=True)
    def pick(a: tc.array(np.int64), i: int):
        return a[i]

    assert nodes.submit(pick, [5, 6], 1).result() == 6
    with pytest.raises(tc.RemoteError, match="IndexError") as caught:
        nodes.submit(pick, [5, 6], 2).result()
    assert caught.value.code == -3


def test_fast_mathematics_can_be_asked_for(nodes):
    @tc.ifunc(fastmath=True)
    def total(a: tc.array(np.float64)):
        sum = 0.0
        for x in a:
            sum += x
        return sum

    assert nodes.submit(total, [0.5, 0.25, 0.25]).result() == 1.0


def test_concurrent_code_runs_and_has_a_content_id_of_its_own(nodes):
    def half(x: float):
        return x / 2

    ordinary, concurrent = tc.ifunc(half), tc.ifunc(concurrent=True)(half)
    assert ordinary.content_id != concurrent.content_id
    assert [nodes.submit(code, 5.0).result() for code in (ordinary, concurrent, ordinary)] == [2.5] * 3


def test_division_by_zero_and_modulo_do_not_take_the_node_down(nodes):
    @tc.ifunc
    def divide(a: int, b: int):
        return a // b, a % b

    assert nodes.submit(divide, 7, 2).result() == (3, 1)
    nodes.submit(divide, 7, 0).exception()
    assert nodes.submit(divide, 9, 2).result() == (4, 1)


def test_data_that_the_target_lacks_is_named(nodes):
    @tc.ifunc
    def missing(x: tc.data("nothing", np.float64)):
        return x[0]

    with pytest.raises(tc.RemoteError, match="no data 'nothing'"):
        nodes.submit(missing).result()


def test_a_payload_that_lies_about_its_length_fails_the_call(nodes):
    @tc.ifunc
    def total(a: tc.array(np.float64), k: int):
        return a.sum() * k

    raw = tc.Ifunc(total.bundle)
    lies = [struct.pack("<qq", 1 << 60, 1), struct.pack("<qq", -1, 1), struct.pack("<qq8x", 9, 1)]
    for payload in [b"", b"x" * 8, *lies]:
        with pytest.raises(tc.RemoteError, match="payload"):
            nodes.submit(raw, payload).result()
    assert nodes.submit(total, [1.0, 2.0], 2).result() == 6.0


def test_arrays_are_sent_from_where_they_lie():
    @tc.ifunc
    def total(a: tc.array(np.float64), k: int, b: tc.array(np.float32)):
        return a.sum() * k + b.sum()

    a, b = np.arange(1000.0), np.arange(10, dtype=np.float32)
    _, sent, other = total.encode((a, 2, b))
    assert np.shares_memory(sent, a) and np.shares_memory(other, b)


def test_both_architectures_are_built(tmp_path):
    @tc.ifunc
    def plain(x: float):
        return x + 1

    plain.save(tmp_path / "plain.ifunc")
    line = [tc._tool.command(), "inspect", str(tmp_path / "plain.ifunc")]
    shown = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert "x86_64" in shown and "aarch64" in shown


def test_bitcode_is_compiled_in_a_process_that_has_numba():
    column = np.arange(10.0)

    @tc.ifunc
    def total(column: tc.data("column", np.float64)):
        return column.sum()

    with tc.Node(data={"column": column}, objects=False) as server, tc.Cluster([server.address]) as cluster:
        assert cluster.submit(total).result() == 45.0
