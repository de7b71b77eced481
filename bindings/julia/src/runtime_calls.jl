# SPDX-License-Identifier: Apache-2.0
#
# What of Julia's runtime the code would need. Throwing becomes one symbol, which `ifunc build` makes into a failed
# call;
# everything else is refused, by the author's line and with what to do instead.

const Handle = Ptr{Cvoid}  # of LLVM

is_runtime(name) = startswith(name, "jl_") || startswith(name, "julia.") || startswith(name,
    "jfptr_") || startswith(name, "jlsys_")

"How a function is called that a target does not have, and what to do instead."
function remedy(name)
    has(parts...) = any(part -> occursin(part, name), parts)
    has("gc_", "alloc", "box_", "new_struct", "array", "string") &&
        return "the code makes an object (an array, a string, a boxed value); use numbers, tuples, and memory that it is given"
    has("apply", "invoke", "jl_f_", "jfptr", "get_binding", "method") &&
        return "the call is decided at run time: a type is not known (see @code_warntype), a global is not const, or " *
               "something is printed; give every variable one concrete type, and say things with Target.log"
    return "a target has no Julia runtime, and nothing can be printed there; work on pointers, numbers and tuples, and say " *
           "things with Target.log"
end

at(instruction, function_) = something(LLVMC.position(instruction), "in $(LLVMC.name(function_))")

"""
Makes what only leads to an exception into a failed call: in a block that ends the program nothing can be seen of what
Julia
does to make the exception. In an entry that is tc_fail() and a return; in a function that is not in line there, one
symbol
that says what was thrown.
"""
function lower_throws(mod, context, entries)
    never = Set(f for f in LLVMC.functions(mod) if never_returns(f))
    names = Set(entry.symbol for entry in entries)
    builder = LLVMC.@llvm(LLVMCreateBuilderInContext, Handle, (Handle,), context)
    for f in collect(LLVMC.functions(mod)), block in LLVMC.blocks(f)
        f in never && continue
        list = collect(LLVMC.instructions(block))
        LLVMC.opcode(list[end]) == LLVMC.UNREACHABLE || continue
        first_call = findfirst(i -> LLVMC.opcode(i) == LLVMC.CALL && is_of_exception(LLVMC.callee(i), never), list)
        first_call === nothing && continue
        LLVMC.@llvm(LLVMPositionBuilderBefore, Cvoid, (Handle, Handle), builder, list[first_call])
        place = LLVMC.@llvm(LLVMInstructionGetDebugLoc, Handle, (Handle,), list[first_call])
        bounds = is_out_of_bounds(list)
        if LLVMC.name(f) in names
            leave_entry(mod, context, builder, f, bounds, something(LLVMC.position(list[first_call]), ""))
        else
            call = LLVMC.call(builder, thrower(mod, context, bounds), Handle[])
            LLVMC.@llvm(LLVMInstructionSetDebugLoc, Cvoid, (Handle, Handle), call, place)
        end
        for instruction in reverse(list[first_call:(LLVMC.name(f) in names ? end : end - 1)])
            LLVMC.@llvm(LLVMInstructionEraseFromParent, Cvoid, (Handle,), instruction)
        end
    end
    LLVMC.@llvm(LLVMDisposeBuilder, Cvoid, (Handle,), builder)
    return nothing
end

const FAIL_BOUNDS, FAIL_EXCEPTION = -3, -6

function leave_entry(mod, context, builder, entry, bounds, place)
    type = LLVMC.@llvm(LLVMGetElementType, Handle, (Handle,), LLVMC.@llvm(LLVMTypeOf, Handle, (Handle,), entry))
    result = LLVMC.@llvm(LLVMGetReturnType, Handle, (Handle,), type)
    kind = LLVMC.@llvm(LLVMGetTypeKind, Cint, (Handle,), result)
    if kind == 0  # void: the main function, at the target
        code, words = bounds ? (FAIL_BOUNDS, "index out of bounds") : (FAIL_EXCEPTION, "exception thrown")
        words = isempty(place) ? words : "$words at $(basename(place))"
        int = LLVMC.@llvm(LLVMIntTypeInContext, Handle, (Handle, Cuint), context, 32)
        text = LLVMC.@llvm(LLVMBuildGlobalStringPtr, Handle, (Handle, Cstring, Cstring), builder, words, "tc.failure")
        number = LLVMC.@llvm(LLVMConstInt, Handle, (Handle, UInt64, Cint), int, code % UInt64, 1)
        address = LLVMC.@llvm(LLVMIntTypeInContext, Handle, (Handle, Cuint), context, 64)
        fail = LLVMC.declare(mod, context, "tc_fail", [int, address])
        pointer = LLVMC.@llvm(LLVMBuildPtrToInt, Handle, (Handle, Handle, Handle, Cstring), builder, text, address, "")
        LLVMC.call(builder, fail, [number, pointer])
        LLVMC.@llvm(LLVMBuildRetVoid, Handle, (Handle,), builder)
    else  # a payload function, at the source: no message
        nothing_made = LLVMC.@llvm(LLVMConstAllOnes, Handle, (Handle,), result)
        LLVMC.@llvm(LLVMBuildRet, Handle, (Handle, Handle), builder, nothing_made)
    end
    return nothing
end

function thrower(mod, context, bounds)
    f = LLVMC.declare(mod, context, bounds ? "jl_bounds_error" : "jl_throw_exception", Handle[])
    LLVMC.add_attribute(f, context, "noreturn")
    return f
end

"A function whose every path ends the program: Julia's own throw_boundserror and its like."
function never_returns(f)
    LLVMC.is_declaration(f) && return false
    for block in LLVMC.blocks(f)
        last = LLVMC.@llvm(LLVMGetBasicBlockTerminator, Handle, (Handle,), block)
        LLVMC.opcode(last) == LLVMC.RET && return false
    end
    return true
end

function is_of_exception(callee, never)
    callee in never && return true
    LLVMC.is_function(callee) || return LLVMC.literal_address(callee) !== nothing
    return LLVMC.is_declaration(callee) && is_runtime(LLVMC.name(callee))
end

function is_out_of_bounds(list)
    return any(list) do instruction
        LLVMC.opcode(instruction) == LLVMC.CALL || return false
        callee = LLVMC.callee(instruction)
        return LLVMC.is_function(callee) && occursin(r"bounds_?error", LLVMC.name(callee))
    end
end

"Throws an IfuncError for the first thing that a target does not have; calls first, which say more than addresses."
function check_travels(mod)
    calls = [(f, instruction) for f in LLVMC.functions(mod) for block in LLVMC.blocks(f)
             for instruction in LLVMC.instructions(block) if LLVMC.opcode(instruction) == LLVMC.CALL]
    # What is decided at run time is the cause of most others.
    sort!(calls; by = call -> !occursin(r"apply|invoke", called_name(last(call))))
    foreach(call -> check_call(call...), calls)
    for f in LLVMC.functions(mod), block in LLVMC.blocks(f), instruction in LLVMC.instructions(block),
        operand in LLVMC.operands(instruction)

        address = LLVMC.literal_address(operand)
        address === nothing || address < 4096 || throw(IfuncError(
            "$(at(instruction, f)): address 0x$(string(address; base = 16)) of an object of this process is written into the " *
            "code (a global array or variable, a string, or a type that is not known); get data by name with Target.data, " *
            "write texts as c\"...\", make other globals const, and see @code_warntype"))
    end
    return nothing
end

"The symbol of what is called, also by its address; empty when it has none."
function called_name(call)
    callee = LLVMC.callee(call)
    LLVMC.is_function(callee) && return LLVMC.name(callee)
    address = LLVMC.literal_address(callee)
    return address === nothing ? "" : symbol_at(address)
end

function check_call(f, call)
    callee, name = LLVMC.callee(call), called_name(call)
    name in ("jl_bounds_error", "jl_throw_exception") && return nothing
    defined = LLVMC.is_function(callee) && !LLVMC.is_declaration(callee)
    is_runtime(name) && !defined &&
        throw(IfuncError("$(at(call, f)): '$name' of Julia's runtime is called; $(remedy(name))"))
    LLVMC.literal_address(callee) === nothing && return nothing
    throw(IfuncError("$(at(call, f)): $(isempty(name) ? "a function" : "'$name'") is called by its address in this process; " *
                     "write ccall(\"extern NAME\", llvmcall, ...), and declare the library of NAME"))
end

"What the loader calls the function at an address; empty when it does not know."
function symbol_at(address)
    found = fill(C_NULL, 4)  # Dl_info: file, base, name, address
    ok = ccall(:dladdr, Cint, (Ptr{Cvoid}, Ptr{Ptr{Cvoid}}), Ptr{Cvoid}(address), found)
    return ok == 0 || found[3] == C_NULL ? "" : unsafe_string(Ptr{UInt8}(found[3]))
end
