# SPDX-License-Identifier: Apache-2.0
#
# Code that Julia made for this machine's processor, for another one. Both are 64-bit, little-endian, and lay out
# plain data
# alike, so code that only computes and follows pointers means the same; what does not is refused.

"How LLVM names and lays out what Julia code can be made for."
const LAYOUTS = Dict("x86_64" => nothing, "aarch64" => "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128")

processor(triple) = String(first(split(triple, '-')))
const HOST = String(Sys.ARCH)

function retarget(mod, triple)
    wanted = processor(triple)
    wanted == HOST && return nothing
    layout = get(LAYOUTS, wanted, nothing)
    layout === nothing && throw(IfuncError("Julia code for $HOST cannot be made into $triple; only into aarch64"))
    for f in LLVMC.functions(mod), block in LLVMC.blocks(f), instruction in LLVMC.instructions(block)
        check_plain(f, instruction, wanted)
    end
    LLVMC.@llvm(LLVMSetTarget, Cvoid, (Handle, Cstring), mod, triple)
    LLVMC.@llvm(LLVMSetDataLayout, Cvoid, (Handle, Cstring), mod, layout)
    return nothing
end

const X86_FP80, STRUCT, ARRAY, VECTOR = 4, 10, 11, 13  # LLVMTypeKind
kind_of(value) = LLVMC.@llvm(LLVMGetTypeKind, Cint, (Handle,), LLVMC.@llvm(LLVMTypeOf, Handle, (Handle,), value))

function check_plain(f, instruction, wanted)
    refuse(what) = throw(IfuncError("$(at(instruction, f)): $what, so the code cannot be made into $wanted; leave that out, or " *
                                    "build with targets = [\"$HOST-linux-gnu\"]"))
    values = [instruction; LLVMC.operands(instruction)]
    any(value -> kind_of(value) == X86_FP80, values) && refuse("a number of 80 bits is used, which only x86-64 has")
    LLVMC.opcode(instruction) == LLVMC.CALL || return nothing
    callee = LLVMC.callee(instruction)
    LLVMC.@llvm(LLVMIsAInlineAsm, Handle, (Handle,), callee) == C_NULL || refuse("there is assembly")
    LLVMC.is_function(callee) && LLVMC.is_declaration(callee) || return nothing
    name = LLVMC.name(callee)
    startswith(name, "llvm.x86.") && refuse("'$name' is an instruction of x86-64")
    startswith(name, "llvm.") && return nothing
    by_value = any(value -> kind_of(value) in (STRUCT, ARRAY, VECTOR),
        [instruction; LLVMC.operands(instruction)[1:(end - 1)]])
    by_value && refuse("'$name' takes or gives a structure by value, which each processor does in its own way")
    return nothing
end
