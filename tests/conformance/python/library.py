# SPDX-License-Identifier: Apache-2.0
import numpy as np
import threechains as tc

hypot = tc.external("hypot", np.float64, np.float64, np.float64)


@tc.ifunc(deps=["m"])
def library(a: np.float64, b: np.float64):
    return hypot(a, b)
