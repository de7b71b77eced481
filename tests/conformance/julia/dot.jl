# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

@ifunc function dot(payload::Ptr{Float64}, size::Csize_t)
    half = (size >> 4) % Int
    a, b = View(payload, half), View(payload + 8half, half)
    sum = 0.0
    for i in 1:half
        sum += a[i] * b[i]
    end
    return sum
end
