# SPDX-License-Identifier: Apache-2.0
"""Arrays as arguments: they arrive as they are, or are refused."""

import types

import numpy as np
import pytest
import threechains as tc

pytest.importorskip("numba", reason="the extra [numba] is not installed")
KINDS = ["?", "i1", "u2", "i4", "u8", "f4", "f8", "c16"]


@pytest.fixture(scope="module")
def node():
    with tc.LocalCluster(1) as cluster:
        yield cluster[0]


def by_type(function, **annotations):
    """Ifuncs of one function, by the type of array that they take."""
    made = {}

    def of(dtype):
        if dtype not in made:
            copy = types.FunctionType(function.__code__, function.__globals__, function.__name__)
            copy.__annotations__ = {name: tc.array(dtype) if kind is tc.array else kind for name, kind in annotations.items()}
            made[dtype] = tc.ifunc(copy)
        return made[dtype]

    return of


@pytest.fixture(scope="module")
def takes():
    def same(given):
        return given

    return by_type(same, given=tc.array)


@pytest.fixture(scope="module")
def reverses():
    def reverse(given):
        last = len(given) - 1
        for i in range(len(given) // 2):
            given[i], given[last - i] = given[last - i], given[i]
        return given

    return by_type(reverse, given=tc.array)


@pytest.fixture(scope="module")
def adds():
    def add(some, number, many):
        total = np.int64(number)
        for x in some:
            total += np.int64(x)
        for x in many:
            total += np.int64(x)
        return total

    return by_type(add, some=tc.array, number=int, many=tc.array)


@pytest.mark.parametrize("dtype, value, told", [
    (np.int16, [70000], "70000 of int64"),
    (np.int16, np.array([1, -40000, 2]), "-40000 of int64"),
    (np.uint8, [3, -1], "-1 of int64"),
    (np.int64, np.array([2**63], np.uint64), "9223372036854775808 of uint64"),
    (np.uint64, [2**64], "18446744073709551616"),
    (np.bool_, [0, 1, 2], "2 of int64"),
    (np.float32, [1.0, -1e300], "-1e\\+300 of float64"),
    (np.complex64, [1e300j], "1e\\+300j of complex128"),
])
def test_an_element_that_the_type_does_not_hold_is_refused_by_its_value(node, takes, dtype, value, told):
    with pytest.raises(OverflowError, match=f"same: 'given' is an array of {np.dtype(dtype)}, .*{told}"):
        node.submit(takes(dtype), value)


@pytest.mark.parametrize("dtype, value, told", [
    (np.int32, [1.9, 2.9], "1.9 of float64"),
    (np.int32, np.array([1.0, 2.0]), "1.0 of float64"),
    (np.bool_, [0.5], "0.5 of float64"),
    (np.float64, [1j], "1j of complex128"),
    (np.int64, np.array(["2024-01-01"], "M8[D]"), "2024-01-01 of datetime64"),
    (np.float64, np.array([5], "m8[s]"), "5 seconds of timedelta64"),
    (np.int64, ["7"], "7 of <U1"),
    (np.uint8, b"abc", "of |S3"),
    (np.float64, [None], "None of object"),
    (np.float64, np.array([1, 2.5], object), "1 of object"),
])
def test_an_array_of_another_kind_is_refused(node, takes, dtype, value, told):
    with pytest.raises(TypeError, match=f"same: 'given' is an array of {np.dtype(dtype)}, .*{told}"):
        node.submit(takes(dtype), value)


@pytest.mark.parametrize("dtype, value", [
    (np.int16, np.array([-32768, 32767])), (np.uint64, [2**64 - 1]), (np.int32, np.array([7], ">i8")), (np.bool_, [0, 1]),
    (np.int64, [True, False]), (np.float64, [1, 2]), (np.float32, [0.1, np.nan, -np.inf]), (np.float32, np.arange(3)),
    (np.complex64, [1, 2.5]), (np.int32, []), (np.int32, np.array([])), (np.uint8, bytearray(b"abc")), (np.int64, range(4)),
])
def test_what_the_type_holds_is_converted(node, takes, dtype, value):
    expected = np.asarray(value).astype(dtype)
    answer = node.submit(takes(dtype), value).result()
    assert answer.dtype == dtype and np.array_equal(answer, expected, equal_nan=expected.dtype.kind in "fc")


def test_a_mapped_file_is_not_copied(takes, tmp_path):
    np.arange(8.0).tofile(tmp_path / "column")
    mapped = np.memmap(tmp_path / "column", np.float64, "r")
    [sent] = takes(np.float64).encode((mapped,))
    assert np.shares_memory(sent, mapped)


def test_rows_are_held_to_their_fields(node):
    row = np.dtype([("id", np.int16), ("at", np.float32, 2)])

    @tc.ifunc
    def first(rows: tc.array(row)):
        return rows[0].id, rows[0].at[1], len(rows)

    assert node.submit(first, [(7, [1, 2.5]), (8, [0, 0])]).result() == (7, 2.5, 2)
    assert node.submit(first, np.array([(7, (1, 2.5))], row)).result() == (7, 2.5, 1)
    with pytest.raises(OverflowError, match="first: 'rows', field 'id' is an array of int16, .*70000"):
        node.submit(first, [(70000, [1, 2])])
    with pytest.raises(TypeError, match="field 'id'.*1.5 of float64"):
        node.submit(first, [(1.5, [1, 2])])
    with pytest.raises(TypeError, match="does not hold"):
        node.submit(first, np.array([(7, (1, 2.5))], [("id", np.int32), ("at", np.float32, 2)]))


def test_a_message_is_no_array(node, takes, echo):
    with pytest.raises(TypeError, match="a Message for ifunc 'echo'"):
        node.submit(takes(np.uint8), node.message(echo, 8))


def test_a_tuple_with_a_complex_number_is_refused_when_it_is_compiled():
    with pytest.raises(tc.IfuncError, match="complex64.* cannot travel") as caught:
        @tc.ifunc
        def both(x: float):
            return x, np.complex64(x)
    assert "tuple of bools, whole numbers and floats" in caught.value.hint


# ---- Any array ----------------------------------------------------------------------------------------------


def any_array(random):
    """An array of one dimension, as programs have them: of any type, order of bytes, stride and size."""
    dtype = np.dtype(random.choice(KINDS))
    count = int(random.choice([0, 1, 2, 3, 7, 8, 9, 100, 1000, 20_000]))
    stride = int(random.choice([1, 1, 2, 3]))
    whole = random.integers(0, 256, count * stride * dtype.itemsize, np.uint8)
    array = (whole[::dtype.itemsize] % 2).astype(bool) if dtype.kind == "b" else whole.view(dtype)
    if random.random() < 0.3:
        array = array.astype(dtype.newbyteorder(">"))
    if random.random() < 0.3 and count:  # a column, or a row, of a matrix
        array = np.array(array.reshape(count, stride), order=random.choice(["C", "F"]))[:, 0]
    else:
        array = array[::stride]
    if random.random() < 0.3:
        array = array[::-1]
    if random.random() < 0.3:
        array = array[int(random.integers(0, 3)):]
    if random.random() < 0.3:
        array.flags.writeable = False
    return array


@pytest.mark.parametrize("seed", range(3))
def test_any_array_arrives_as_numpy_has_it(node, reverses, adds, seed):
    random = np.random.default_rng(seed)
    for step in range(150):
        array = any_array(random)
        before, made = array.tobytes(), array.astype(array.dtype.newbyteorder("="))
        told = f"seed {seed}, step {step}: {array.dtype}, strides {array.strides}, {array.size} elements"
        assert node.submit(reverses(made.dtype.type), array).result().tobytes() == made[::-1].tobytes(), told
        if made.dtype.kind in "iu":
            total = node.submit(adds(made.dtype.type), made[:5], 3, array).result()
            with np.errstate(over="ignore"):
                assert np.int64(total) == made[:5].sum(dtype="i8") + made.sum(dtype="i8") + 3, told
        assert array.tobytes() == before, told
