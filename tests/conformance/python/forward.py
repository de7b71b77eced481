# SPDX-License-Identifier: Apache-2.0
import numpy as np
import threechains as tc


@tc.ifunc
def forward(payload: tc.array(np.uint8)):
    if tc.node_id() + 1 < tc.node_count():
        if tc.forward(tc.node_id() + 1, payload) != 0:
            raise tc.Failure(1, "no way there")
        return payload
    payload[0] = ord("0") + tc.node_id()
    return payload
