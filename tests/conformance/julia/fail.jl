# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

# Declared by hand, as its name in this file is that of what it calls.
stop() = fail(42, c"no such luck")
ThreeChains.declare(Ifunc("fail"; main = stop))
