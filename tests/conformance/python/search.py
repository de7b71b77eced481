# SPDX-License-Identifier: Apache-2.0
import numpy as np
import threechains as tc


@tc.ifunc
def search(wanted: tc.array(np.uint8), text: tc.data("text", np.uint8)):
    for i in range(text.size - wanted.size + 1):
        same = True
        for k in range(wanted.size):
            if text[i + k] != wanted[k]:
                same = False
                break
        if same:
            return i
    return -1
