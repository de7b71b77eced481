# SPDX-License-Identifier: Apache-2.0
import numpy as np
import threechains as tc


@tc.ifunc
def reply(text: tc.array(np.uint8)):
    for i in range(text.size // 2):
        last = text.size - 1 - i
        text[i], text[last] = text[last], text[i]
    return text
