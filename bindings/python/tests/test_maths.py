# SPDX-License-Identifier: Apache-2.0
"""Mathematics, helper functions and closures: what is written without a thought of where it runs."""

import math

import numpy as np
import pytest
import threechains as tc

pytest.importorskip("numba", reason="the extra [numba] is not installed")
RATE = 3.5


def twice_and_one(x):
    return 2 * x + 1


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def run(cluster, function, *arguments):
    return cluster.submit(tc.ifunc(function), *arguments).result()


ONE = ["acos", "asin", "atan", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acosh", "asinh", "atanh", "exp", "expm1", "log", "log10",
       "log2", "log1p", "cbrt", "exp2", "sqrt", "erf", "erfc", "gamma", "lgamma", "floor", "ceil", "trunc", "fabs"]


@pytest.mark.parametrize("name", ONE)
def test_the_functions_of_math_give_what_they_give_here(cluster, name):
    function = getattr(math, name, None)
    if function is None:
        pytest.skip(f"math.{name} is not in this version of Python")
    x = 1.25 if name == "acosh" else 0.75

    def calls(x: float) -> float:
        return function(x)

    assert run(cluster, calls, x) == pytest.approx(function(x), rel=1e-14)


@pytest.mark.parametrize("name", ["exp", "log1p", "cbrt", "tanh", "arctan", "sin", "exp2", "rint", "sign"])
def test_those_of_numpy_work_on_numbers(cluster, name):
    function = getattr(np, name)

    def calls(x: float) -> float:
        return function(x)

    def calls_single(x: np.float32) -> np.float32:
        return function(x)

    assert run(cluster, calls, 0.75) == pytest.approx(float(function(0.75)), rel=1e-14)
    assert run(cluster, calls_single, 0.75) == pytest.approx(float(function(np.float32(0.75))), rel=1e-5)


def test_functions_of_two_numbers_and_powers_work(cluster):
    def calls(x: float, y: float):
        return x**y, np.arctan2(x, y), np.hypot(x, y), math.fmod(x, y), math.copysign(x, -y), np.power(x, 3)

    x, y = 2.5, 1.5
    assert run(cluster, calls, x, y) == pytest.approx((x**y, np.arctan2(x, y), np.hypot(x, y), math.fmod(x, y), -x, x**3))


def test_dot_and_inner_of_two_arrays_need_no_blas(cluster):
    def products(a: tc.array(np.float64), b: tc.array(np.float64)):
        return np.dot(a, b), np.inner(a, b)

    a, b = np.arange(5.0), np.linspace(1, 2, 5)
    assert run(cluster, products, a, b) == pytest.approx((a @ b, a @ b))
    assert run(cluster, products, a[:0], b[:0]) == (0.0, 0.0)
    with pytest.raises(tc.RemoteError, match="different lengths"):
        run(cluster, products, a, b[1:])


def test_plain_helper_functions_are_compiled_along(cluster):
    def calls(x: float, n: int):
        return twice_and_one(x) * RATE, factorial(n)

    assert run(cluster, calls, 2.0, 10) == (17.5, 3628800)


def test_closures_over_numbers_small_arrays_and_functions_are_compiled_along(cluster):
    def made_with(factor):
        weights = np.array([1.0, 10.0, 100.0]) * factor

        def weighted(x, i):
            return x * weights[i]

        def calls(x: float, i: int):
            return weighted(x, i) + factor

        return calls

    assert run(cluster, made_with(2.0), 3.0, 1) == 62.0
    assert run(cluster, made_with(4.0), 3.0, 1) == 124.0, "each closure has its own"


def test_another_ifunc_is_a_helper_as_well(cluster):
    @tc.ifunc
    def half(x: float):
        return x / 2

    def calls(x: float):
        return half(x) + half(1.0)

    assert run(cluster, calls, 3.0) == 2.0


def test_what_a_helper_may_not_do_is_refused_with_the_line_in_the_helper():
    def helper(x):
        return len(str(x))

    def calls(x: int):
        return helper(x)

    with pytest.raises(tc.IfuncError, match="allocates"):
        tc.ifunc(calls)


def test_a_function_without_mathematics_asks_for_no_library(cluster):
    def adds(x: float):
        return math.sqrt(x) + abs(x)

    def grows(x: float):
        return math.exp(x)

    assert b"libm.so" not in tc.ifunc(adds).bundle and b"libm.so" in tc.ifunc(grows).bundle
