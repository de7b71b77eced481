# SPDX-License-Identifier: Apache-2.0
#
# What cannot travel from Julia. Its own code generator writes addresses of the process into the code, which must not
# go unseen.
#
# REQUIRES: julia
# RUN: %cases %s %t
# RUN: %refuses %t/unstable.jl | %FileCheck %t/unstable.jl
# RUN: %refuses %t/variable.jl | %FileCheck %t/variable.jl
# RUN: %refuses %t/array.jl | %FileCheck %t/array.jl
# RUN: %refuses %t/text.jl | %FileCheck %t/text.jl
# RUN: %refuses %t/printing.jl | %FileCheck %t/printing.jl
# RUN: %refuses %t/allocation.jl | %FileCheck %t/allocation.jl
# RUN: %refuses %t/ordinary_ccall.jl | %FileCheck %t/ordinary_ccall.jl
# RUN: %refuses %t/address.jl | %FileCheck %t/address.jl
# RUN: %refuses %t/unknown.jl | %FileCheck %t/unknown.jl
# RUN: %refuses %t/assembly.jl | %FileCheck %t/assembly.jl
# RUN: %refuses %t/instruction.jl | %FileCheck %t/instruction.jl
# RUN: %refuses %t/by_value.jl --extern area | %FileCheck %t/by_value.jl
# RUN: %refuses %t/other.jl | %FileCheck %t/other.jl
# RUN: %build %t/instruction.jl --target x86_64-linux-gnu -o %t.ifunc

#--- unstable.jl
using ThreeChains
@ifunc function unstable(payload::Ptr{Int64})
    return (unsafe_load(payload) > 0 ? 1 : 2.0)
end
# CHECK: unstable returns Union{Float64, Int64}, which is not a plain value: its types are not stable{{.*}}@code_warntype
# CHECK: does not compile for x86_64-linux-gnu (what is wrong stands above)
# CHECK-NOT: JULIA_LOAD_PATH

#--- variable.jl
using ThreeChains
step = 3
@ifunc function variable(payload::Ptr{Int64}, size::Csize_t, target::Ptr{Int64})
    # CHECK: variable.jl:[[#@LINE+1]]: 'jl_{{.*}}a global is not const
    unsafe_store!(target, unsafe_load(payload) + step)
    return nothing
end

#--- array.jl
using ThreeChains
const table = [1, 2, 3]
@ifunc function array(payload::Ptr{Int64})
    # CHECK: array.jl:[[#@LINE+1]]: address 0x{{[0-9a-f]+}} of an object of this process is written into the code {{.*}}Target.data
    return @inbounds table[unsafe_load(payload)]
end

#--- text.jl
using ThreeChains
using ThreeChains.Target
@ifunc function text(payload::Ptr{Int64})
    # CHECK: text.jl:[[#@LINE+1]]: {{.*}}Target.log
    Target.log(1, "hello")
    return nothing
end

#--- printing.jl
using ThreeChains
@ifunc function printing(payload::Ptr{Int64})
    # CHECK: printing.jl:[[#@LINE+1]]: {{.*}}something is printed{{.*}}Target.log
    println(unsafe_load(payload))
    return nothing
end

#--- allocation.jl
using ThreeChains
@ifunc function allocation(payload::Ptr{Int64}, size::Csize_t)
    # CHECK: allocation.jl:[[#@LINE+1]]: 'jl_alloc_array_1d' {{.*}}the code makes an object{{.*}}use numbers, tuples
    numbers = zeros(Int64, size)
    return numbers[1]
end

#--- ordinary_ccall.jl
using ThreeChains
@ifunc function ordinary_ccall(payload::Ptr{Int64})
    # CHECK: ordinary_ccall.jl:[[#@LINE+1]]: {{.*}}is called by its address in this process; write ccall("extern NAME", llvmcall
    return ccall(:labs, Int64, (Int64,), unsafe_load(payload))
end

#--- address.jl
using ThreeChains
@ifunc function address(payload::Ptr{Int64})
    # CHECK: address.jl:[[#@LINE+1]]: address 0x7f1234567890
    return unsafe_load(Ptr{Int64}(0x7f1234567890))
end

#--- unknown.jl
using ThreeChains
@ifunc function unknown(payload::Ptr{Float64})
    # CHECK: unknown.jl:[[#@LINE+1]]: 'sinn' is called but neither the ifunc ABI nor a declared library defines it
    return ccall("extern sinn", llvmcall, Float64, (Float64,), unsafe_load(payload))
end

#--- assembly.jl
using ThreeChains
@ifunc function assembly(payload::Ptr{Int64})
    # CHECK: assembly.jl:[[#@LINE+1]]: inline assembly 'nop' is for one kind of CPU only
    Base.llvmcall("call void asm sideeffect \"nop\", \"\"()\nret void", Cvoid, Tuple{})
    return unsafe_load(payload)
end

#--- instruction.jl
using ThreeChains
@ifunc function instruction(payload::Ptr{Int64})
    # CHECK: instruction.jl:[[#@LINE+1]]: {{.*}}cannot be made into aarch64{{.*}}'llvm.x86.sse2.pause' is an instruction of its own CPU
    Base.llvmcall(("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()\nret void"), Cvoid, Tuple{})
    return unsafe_load(payload)
end

#--- by_value.jl
using ThreeChains
struct Corner
    x::UInt64
    y::UInt64
    z::UInt64
end
@ifunc function by_value(payload::Ptr{Corner})
    # CHECK: by_value.jl:[[#@LINE+1]]: {{.*}}'area' takes a structure of 24 bytes by value{{.*}}pass a pointer
    return ccall("extern area", llvmcall, UInt64, (Corner,), unsafe_load(payload))
end

#--- other.jl
using ThreeChains
@ifunc something(payload::Ptr{Int64}) = unsafe_load(payload)
# CHECK: other.jl: declares no ifunc 'other'; there is something
