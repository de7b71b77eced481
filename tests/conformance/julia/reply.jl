# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

# Declared by hand, as its name in this file is that of what it calls.
backwards(payload::Ptr{UInt8}, size::Csize_t) = begin
    last = size % Int
    for i in 1:(last >> 1)
        first = unsafe_load(payload, i)
        unsafe_store!(payload, unsafe_load(payload, last + 1 - i), i)
        unsafe_store!(payload, first, last + 1 - i)
    end
    reply(payload, size)
    return nothing
end
ThreeChains.declare(Ifunc("reply"; main = backwards))
