# SPDX-License-Identifier: Apache-2.0
"""What cannot become an ifunc is refused when it is compiled, with the symbol, the place and what to do instead."""

import functools
import importlib
import io
import sys

import numpy as np
import pytest
import threechains as tc

pytest.importorskip("numba", reason="the extra [numba] is not installed")
COUNTER = 0


def refusal(function, **options):
    with pytest.raises(tc.IfuncError) as caught:
        tc.ifunc(**options)(function)
    assert caught.value.hint
    return caught.value


def test_print_is_refused():
    def shows(x: float):
        print(x)

    error = refusal(shows)
    assert error.symbol == "numba_gil_ensure" and "interpreter" in error.hint


def test_allocation_is_refused():
    def array(x: tc.array(np.float64)):
        return (x * 2).sum()

    def list_(x: int):
        return len([i for i in range(x)])

    def dictionary(x: int):
        return {x: x}[x]

    def text(x: int):
        return len(str(x))

    for function in (array, list_, dictionary, text):
        error = refusal(function)
        assert error.symbol.startswith("NRT_") and "allocates" in str(error) and "test_refusals.py:" in str(error)


def test_python_objects_are_refused():
    class Thing:
        value = 3

    thing = Thing()

    def touches(x: float):
        return thing.value * x

    assert "thing" in refusal(touches).symbol


def test_a_global_captured_by_address_is_refused():
    table = np.zeros(1_000_000)

    def looks(i: int):
        return table[i]

    error = refusal(looks)
    assert "tc.data(name, dtype)" in error.hint and "test_refusals.py:" in str(error) and "address 0x" in str(error)


def test_answers_without_fixed_bytes_are_refused():
    def text(x: int):
        return "text"

    assert "tc.out" in refusal(text).hint


def test_annotations_that_mean_nothing_are_refused():
    def no_annotation(x):
        return x

    def of_text(x: str):
        return 0

    def variadic(*x: float):
        return 0

    assert refusal(no_annotation).symbol == "x"
    assert refusal(of_text).symbol == "x"
    assert refusal(variadic).symbol == "x"


def test_forwarding_other_arguments_than_it_takes_is_refused():
    def hop(left: int, total: float):
        return tc.forward(1, left)

    assert "takes (node, left, total)" in str(refusal(hop))


def test_only_plain_functions_are_taken():
    async def later(x: float):
        return x

    def generator(x: float):
        yield x

    class Object:
        def method(self, x: float):
            return x

        __call__ = method

    for function in (later, generator, Object, Object(), Object().method, functools.partial(generator), len, 3):
        assert "def" in refusal(function).hint


def test_a_global_that_is_written_is_refused():
    def counts(x: int):
        global COUNTER
        COUNTER += x
        return COUNTER

    assert "STORE_GLOBAL" in str(refusal(counts))


def test_a_function_of_a_library_that_is_not_declared_is_refused_with_how_to_declare_it():
    adler = tc.external("adler32", np.uint64, np.uint64, tc.array(np.uint8), np.uint32)

    def sums(text: tc.array(np.uint8)):
        return adler(1, text, len(text))

    error = refusal(sums)
    assert error.symbol == "adler32" and 'deps=["m"]' in error.hint and "#pragma" not in str(error)


def test_what_only_this_process_has_is_refused_with_the_line_and_what_to_write():
    log, table = io.StringIO(), {"a": 1.0}

    def writes(x: float):
        y = x + 1
        log.write("x")
        return y

    def looks(x: float):
        return x + NO_SUCH_NAME  # noqa: F821

    def column(x: float):
        return x * table["a"]

    error = refusal(writes)
    line = writes.__code__.co_firstlineno + 2
    assert error.symbol == "log" and f"test_refusals.py:{line}: writes: 'log' is of type _io.StringIO" in str(error)
    assert "read it here" in error.hint
    error = refusal(looks)
    assert "'NO_SUCH_NAME' is not defined" in str(error) and "test_refusals.py:" in str(error)
    assert "numbers and NumPy arrays" in refusal(column).hint


def test_a_data_frame_is_refused_with_what_to_do_with_its_columns(tmp_path, monkeypatch):
    (tmp_path / "pandas.py").write_text("class DataFrame:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    frame = importlib.import_module("pandas").DataFrame()
    monkeypatch.delitem(sys.modules, "pandas")

    def looks(x: float):
        return x + frame.a[0]

    error = refusal(looks)
    assert error.symbol == "frame" and "tc.data(name, dtype)" in error.hint and "columns" in error.hint


def test_linear_algebra_is_refused_with_what_there_is():
    def multiplies(x: tc.array(np.float64), answer: tc.out(np.float64, 1)):
        answer[0] = np.linalg.det(x.reshape(2, 2))

    error = refusal(multiplies)
    assert "linear algebra" in str(error) or "NRT_" in error.symbol


def test_random_numbers_and_the_clock_are_refused():
    def draws(x: int):
        return np.random.rand()

    assert "interpreter" in refusal(draws).hint


@pytest.mark.parametrize("count", [0, -5, 1 << 40])
def test_an_answer_of_no_size_or_too_much_is_refused(count):
    def fills(answer: tc.out(np.int64, count)):
        answer[0] = 1

    assert f"{8 * count} bytes when it may have 1 to" in str(refusal(fills))


def test_a_large_answer_in_memory_that_concurrent_calls_share_is_refused():
    def fills(answer: tc.out(np.int64, 2049)):
        answer[0] = 1

    assert "16392 bytes" in str(refusal(fills, concurrent=True))
    tc.ifunc(fills)

    def fits(answer: tc.out(np.int64, 2048)):
        answer[0] = 1

    tc.ifunc(concurrent=True)(fits)


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_data_without_a_proper_name_is_refused(name):
    def takes(x: tc.data(name, np.int64)):
        return x[0]

    assert refusal(takes).symbol == "x"


def test_a_failure_that_is_no_constant_is_refused():
    def fails(x: int):
        raise tc.Failure(x, "words")

    assert "written there" in str(refusal(fails))


@pytest.mark.parametrize("targets", [["nonsense"], ["i686-linux-gnu"], [], "x86_64-linux-gnu"])
def test_targets_that_are_none_are_refused(targets):
    def plain(x: float):
        return x

    with pytest.raises(tc.IfuncError) as caught:
        tc.ifunc(targets=targets)(plain)
    assert caught.value.hint
