# SPDX-License-Identifier: Apache-2.0
import numpy as np
import threechains as tc


@tc.ifunc
def named_data(text: tc.data("text", np.uint8)):
    return text.size, np.uint64(tc.has_data("nothing"))
