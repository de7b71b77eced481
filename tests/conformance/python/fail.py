# SPDX-License-Identifier: Apache-2.0
import threechains as tc


@tc.ifunc
def fail():
    raise tc.Failure(42, "no such luck")
