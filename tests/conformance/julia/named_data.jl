# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

@ifunc function named_data()
    _, size = data(UInt8, c"text")
    nothing_there, _ = data(UInt8, c"nothing")
    return (UInt64(size), UInt64(nothing_there != C_NULL))
end
