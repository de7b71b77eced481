# SPDX-License-Identifier: Apache-2.0
#
# dot.c in Julia.
using ThreeChains
using ThreeChains.Target

@ifunc function dot()
    numbers, bytes = data(Float64, c"numbers")
    half = (bytes >> 4) % Int
    sum = 0.0
    @inbounds @simd for i in 1:half
        sum += unsafe_load(numbers, i) * unsafe_load(numbers, half + i)
    end
    return sum
end
