# SPDX-License-Identifier: Apache-2.0
import numpy as np
import threechains as tc

order = np.dtype([("amount", np.uint32), ("change", np.int16), ("level", np.uint8), ("price", np.float64)], align=True)


@tc.ifunc
def structure(payload: tc.array(order)):
    one = payload[0]
    return one.price * one.amount, np.int64(one.amount) + one.change - one.level
