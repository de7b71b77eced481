# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

struct Chase
    at::UInt64
    steps::UInt64
end

@ifunc function chase(payload::Ptr{Chase})
    chase = unsafe_load(payload)
    table, _ = data(UInt64, c"table")
    at = chase.at
    for _ in 1:chase.steps
        at = unsafe_load(table, at + 1)
    end
    return at
end
