# SPDX-License-Identifier: Apache-2.0
#
# What Julia throws fails the call, with a code and the author's line, and nothing of Julia's runtime is left.
#
# REQUIRES: julia
# RUN: %cases %s %t
# RUN: %build %t/bounds.jl --target x86_64-linux-gnu -o %t.ifunc
# RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/bounds.jl
# RUN: %build %t/division.jl --target x86_64-linux-gnu -o %t.ifunc
# RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/division.jl
# RUN: %build %t/inexact.jl --target aarch64-linux-gnu -o %t.ifunc
# RUN: %asm-arm --cpu generic %t.ifunc | %FileCheck %t/inexact.jl
# RUN: %build %t/domain.jl --target x86_64-linux-gnu -o %t.ifunc
# RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/domain.jl

#--- bounds.jl
using ThreeChains
using ThreeChains.Target
@ifunc function bounds(payload::Ptr{Int64}, size::Csize_t)
    numbers = View(payload, Int(size >> 3))
    return numbers[numbers[1]]
end
# CHECK-NOT: jl_
# CHECK: movl $-3, %edi
# CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
# CHECK-NOT: jl_
# CHECK: .asciz "index out of bounds at {{.*}}.jl:{{[0-9]+}}"

#--- division.jl
using ThreeChains
@ifunc function division(payload::Ptr{Int64}, size::Csize_t)
    return div(unsafe_load(payload, 1), unsafe_load(payload, 2))
end
# CHECK-NOT: jl_
# CHECK: movl $-6, %edi
# CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
# CHECK: .asciz "exception thrown at division.jl:3"

#--- inexact.jl
using ThreeChains
@ifunc function inexact(payload::Ptr{Float64}, size::Csize_t)
    return Int32(unsafe_load(payload))
end
# CHECK-NOT: jl_
# CHECK: mov w0, #-6
# CHECK: tc_fail
# CHECK: .asciz "exception thrown at inexact.jl:3"

#--- domain.jl
using ThreeChains
@ifunc function domain(payload::Ptr{Int64}, size::Csize_t)
    size < 8 && error("eight bytes at least")
    return unsafe_load(payload)
end
# CHECK-NOT: jl_
# CHECK: movl $-6, %edi
# CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
# CHECK: .asciz "exception thrown at domain.jl:3"
