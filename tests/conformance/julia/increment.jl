# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

@ifunc function increment(payload::Ptr{UInt64}, size::Csize_t)
    counter, _ = data(UInt64, c"counter")
    (size == 8 && counter != C_NULL) || return fail(1, c"no counter, or no number")
    unsafe_store!(counter, unsafe_load(counter) + unsafe_load(payload))
    reply(counter, 8)
    return nothing
end
