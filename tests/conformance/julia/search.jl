# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

@inline function is_at(text, wanted, size)
    for k in 1:size
        unsafe_load(text, k) == unsafe_load(wanted, k) || return false
    end
    return true
end

@ifunc function search(payload::Ptr{UInt8}, size::Csize_t)
    text, bytes = data(UInt8, c"text")
    for i in 0:(bytes % Int - size % Int)
        is_at(text + i, payload, size % Int) && return i % UInt64
    end
    return typemax(UInt64)
end
