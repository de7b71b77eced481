# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

# Declared by hand, as its name in this file is that of what it calls.
onward(payload::Ptr{UInt8}, size::Csize_t) = begin
    if id() + 1 < count_nodes()
        forward(id() + 1, payload, size) == 0 || fail(1, c"no way there")
        return nothing
    end
    unsafe_store!(payload, UInt8('0') + (id() % UInt8))
    reply(payload, size)
    return nothing
end
ThreeChains.declare(Ifunc("forward"; main = onward))
