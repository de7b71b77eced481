# SPDX-License-Identifier: Apache-2.0
import numpy as np
import threechains as tc


@tc.ifunc
def chase(at: np.uint64, steps: np.uint64, table: tc.data("table", np.uint64)):
    for _ in range(steps):
        at = table[at]
    return at
