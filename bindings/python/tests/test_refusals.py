# SPDX-License-Identifier: Apache-2.0
"""What cannot become an ifunc is refused when it is compiled, with the symbol, the place and what to do instead."""

import functools
import math

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
    def grows(x: float):
        return math.exp(x)

    error = refusal(grows)
    assert error.symbol == "exp" and 'deps=["m"]' in error.hint and "#pragma" not in str(error)


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
