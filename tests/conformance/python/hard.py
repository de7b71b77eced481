# SPDX-License-Identifier: Apache-2.0
# What Python can do and few ifuncs do; each number of the answer is one of them.
import math

import numpy as np
import threechains as tc
from numba import njit


@njit
def ways(steps):
    return 1 if steps < 2 else ways(steps - 1) + ways(steps - 2)


@njit
def smallest(values):
    at = 0
    for i, value in enumerate(values):
        if value < values[at]:
            at = i
    return at, values[at]


@tc.ifunc
def hard(numbers: tc.array(np.int64)):
    a, b = numbers[0], numbers[1]
    signs = -7 // 2 * 100 + -7 % 3 + (a % -5) * 10
    odd = 0
    for value in numbers[1::2]:
        odd += value
    backwards = 0
    for value in numbers[::-1]:
        backwards = backwards * 3 + value
    at, least = smallest(numbers)
    total, n = 0.0, 0
    while True:
        n += 1
        if n % 3 == 0:
            continue
        total += math.sqrt(n)
        if n > b % 50:
            break
    small = np.int8(a) + np.int8(100)
    return (signs, odd, backwards, at * 1000 + least, math.floor(total * 1000), ways(b % 15), np.int64(small),
            int(a * 0.5), (a << 5) ^ (b >> 2), numbers.size)
