# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

@ifunc function library(payload::Ptr{Float64})
    return ccall("extern hypot", llvmcall, Float64, (Float64, Float64), unsafe_load(payload, 1), unsafe_load(payload, 2))
end
