# SPDX-License-Identifier: Apache-2.0
#
# The ifuncs of the tests, which `ifunc build` can also read from here.

using ThreeChains
using ThreeChains.Target

@ifunc function dot(payload::Ptr{Float64}, size::Csize_t)
    half = (size >> 4) % Int
    sum = 0.0
    @inbounds @simd for i in 1:half
        sum += unsafe_load(payload, i) * unsafe_load(payload, i + half)
    end
    return sum
end

@ifunc function pick(payload::Ptr{Int64}, size::Csize_t)
    numbers = View(payload, Int(size >> 3))
    return numbers[numbers[1]]
end

@ifunc function divide(payload::Ptr{Int64}, size::Csize_t)
    return div(unsafe_load(payload, 1), unsafe_load(payload, 2))
end

@ifunc function named(payload::Ptr{Int64})
    table, bytes = data(Float64, c"table")
    table == C_NULL && return fail(7, c"no table here")
    reply(View(table, Int(bytes >> 3))[unsafe_load(payload)])
    return nothing
end

@ifunc concurrent function triple(payload::Ptr{Int64})
    return 3 * unsafe_load(payload)
end
@ifunc concurrent increased(payload::Ptr{Int64}) = 1 + unsafe_load(payload)
@ifunc decreased main = ((payload::Ptr{Int64}) -> unsafe_load(payload) - 1) concurrent = true

@ifunc function count_up(payload::Ptr{UInt64}, size::Csize_t, counter::Ptr{UInt64})
    unsafe_store!(counter, unsafe_load(counter) + unsafe_load(payload))
    return nothing
end

@ifunc function longest(payload::Ptr{Float64})
    return ccall("extern hypot", llvmcall, Float64, (Float64, Float64), unsafe_load(payload, 1), unsafe_load(payload,
        2))
end

# The three functions of the 2022 talk: source args become the payload, which is stored at the target.
talk_size(source_args::Ptr{Cvoid}, size::Csize_t)::Csize_t = Csize_t(8)
function talk_init(payload::Ptr{Cvoid}, payload_size::Csize_t, source_args::Ptr{Cvoid}, size::Csize_t)::Cint
    from = Base.unsafe_convert(Ptr{UInt64}, source_args)
    to = Base.unsafe_convert(Ptr{UInt64}, payload)
    Base.unsafe_store!(to, 2 * Base.unsafe_load(from))
    return Cint(0)
end
function talk_main(payload::Ptr{Cvoid}, payload_size::Csize_t, target_args::Ptr{Cvoid})::Cvoid
    from = Base.unsafe_convert(Ptr{UInt64}, payload)
    to = Base.unsafe_convert(Ptr{UInt64}, target_args)
    Base.unsafe_store!(to, Base.unsafe_load(from))
    return nothing
end
@ifunc talk main = talk_main payload_size = talk_size payload_init = talk_init
