# SPDX-License-Identifier: Apache-2.0
import numpy as np
import threechains as tc


@tc.ifunc
def dot(values: tc.array(np.float64)):
    half = values.size // 2
    total = 0.0
    for i in range(half):
        total += values[i] * values[half + i]
    return total
