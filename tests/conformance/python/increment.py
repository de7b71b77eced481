# SPDX-License-Identifier: Apache-2.0
import numpy as np
import threechains as tc


@tc.ifunc
def increment(payload: tc.array(np.uint8), counter: tc.data("counter", np.uint64, optional=True)):
    if payload.size != 8 or counter.size == 0:
        raise tc.Failure(1, "no counter, or no number")
    counter[0] += payload.view(np.uint64)[0]
    return counter[0]
