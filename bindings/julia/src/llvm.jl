# SPDX-License-Identifier: Apache-2.0

"The part of LLVM's C API that this package uses, of the LLVM that Julia itself is linked to (Julia 1.5)."
module LLVMC

const Handle = Ptr{Cvoid}

"Symbols of Julia's own process."
macro llvm(name, result, types, arguments...)
    return esc(:(ccall($(QuoteNode(name)), $result, $types, $(arguments...))))
end

name(value) = unsafe_string(@llvm(LLVMGetValueName, Cstring, (Handle,), value))

"Walks a list of the C API: functions of a module, blocks of a function, instructions of a block."
struct List
    first::Handle
    next::Function
end
Base.iterate(list::List, at = list.first) = at == C_NULL ? nothing : (at, list.next(at))
Base.IteratorSize(::Type{List}) = Base.SizeUnknown()
Base.eltype(::Type{List}) = Handle

functions(mod) = List(@llvm(LLVMGetFirstFunction, Handle, (Handle,), mod), f -> @llvm(LLVMGetNextFunction, Handle,
    (Handle,), f))
blocks(f) = List(@llvm(LLVMGetFirstBasicBlock, Handle, (Handle,), f), b -> @llvm(LLVMGetNextBasicBlock, Handle,
    (Handle,), b))
instructions(b) =
    List(@llvm(LLVMGetFirstInstruction, Handle, (Handle,), b), i -> @llvm(LLVMGetNextInstruction, Handle, (Handle,), i))

is_declaration(f) = @llvm(LLVMIsDeclaration, Cint, (Handle,), f) != 0
opcode(i) = @llvm(LLVMGetInstructionOpcode, Cint, (Handle,), i)
const RET, UNREACHABLE, PHI, CALL = 1, 7, 44, 45  # LLVMOpcode

operands(value) = [@llvm(LLVMGetOperand, Handle, (Handle, Cuint), value, k)
                   for k in 0:(@llvm(LLVMGetNumOperands, Cint, (Handle,), value) - 1)]
callee(call) = @llvm(LLVMGetCalledValue, Handle, (Handle,), call)
is_function(value) = @llvm(LLVMIsAFunction, Handle, (Handle,), value) != C_NULL
is_expression(value) = @llvm(LLVMIsAConstantExpr, Handle, (Handle,), value) != C_NULL
text(value) = unsafe_string(@llvm(LLVMPrintValueToString, Cstring, (Handle,), value))

"""
The number that a constant makes a pointer of, anywhere inside it, or nothing.
"""
function literal_address(value)
    is_expression(value) || return nothing
    if @llvm(LLVMGetConstOpcode, Cint, (Handle,), value) == 40  # LLVMIntToPtr
        number = operands(value)[1]
        @llvm(LLVMIsAConstantInt, Handle, (Handle,), number) == C_NULL && return nothing
        return @llvm(LLVMConstIntGetZExtValue, UInt64, (Handle,), number)
    end
    for operand in operands(value)
        found = literal_address(operand)
        found === nothing || return found
    end
    return nothing
end

"""
"file.jl:12", where the code has positions: the author's line, not that of what Base and this package have in line
there.
"""
function position(instruction)
    place = @llvm(LLVMInstructionGetDebugLoc, Handle, (Handle,), instruction)
    found = nothing
    while place != C_NULL
        scope = @llvm(LLVMDILocationGetScope, Handle, (Handle,), place)
        file = @llvm(LLVMDIScopeGetFile, Handle, (Handle,), scope)
        size = Ref{Cuint}(0)
        text = file == C_NULL ? C_NULL : @llvm(LLVMDIFileGetFilename, Ptr{UInt8}, (Handle, Ptr{Cuint}), file, size)
        name = text == C_NULL ? "" : unsafe_string(text, size[])
        is_authors = !isempty(name) && !startswith(realpath_or(name), PACKAGE)
        # Base's files have relative names; outer places come later.
        (found === nothing || isabspath(name)) && is_authors &&
            (found = "$name:$(@llvm(LLVMDILocationGetLine, Cuint, (Handle,), place))")
        place = @llvm(LLVMDILocationGetInlinedAt, Handle, (Handle,), place)
    end
    return found
end
const PACKAGE = realpath(@__DIR__)
realpath_or(name) = ispath(name) ? realpath(name) : name

attribute_kind(name) = @llvm(LLVMGetEnumAttributeKindForName, Cuint, (Cstring, Csize_t), name, sizeof(name))
function add_attribute(f, context, name)
    attribute = @llvm(LLVMCreateEnumAttribute, Handle, (Handle, Cuint, UInt64), context, attribute_kind(name), 0)
    return @llvm(LLVMAddAttributeAtIndex, Cvoid, (Handle, Cuint, Handle), f, typemax(Cuint), attribute)
end
remove_attribute(f, name) =
    @llvm(LLVMRemoveEnumAttributeAtIndex, Cvoid, (Handle, Cuint, Cuint), f, typemax(Cuint), attribute_kind(name))

has_attribute(f, name) =
    @llvm(LLVMGetEnumAttributeAtIndex, Handle, (Handle, Cuint, Cuint), f, typemax(Cuint),
        attribute_kind(name)) != C_NULL

"The function called `name` without a result, declared when it is not there."
function declare(mod, context, name, arguments)
    found = @llvm(LLVMGetNamedFunction, Handle, (Handle, Cstring), mod, name)
    found == C_NULL || return found
    void = @llvm(LLVMVoidTypeInContext, Handle, (Handle,), context)
    type = @llvm(LLVMFunctionType, Handle, (Handle, Ptr{Handle}, Cuint, Cint), void, arguments, length(arguments), 0)
    return @llvm(LLVMAddFunction, Handle, (Handle, Cstring, Handle), mod, name, type)
end
call(builder, f, arguments) = @llvm(LLVMBuildCall, Handle, (Handle, Handle, Ptr{Handle}, Cuint, Cstring), builder, f,
    arguments,
                                    length(arguments), "")

function run_passes(fill, mod)
    passes = @llvm(LLVMCreatePassManager, Handle, ())
    fill(passes)
    @llvm(LLVMRunPassManager, Cint, (Handle, Handle), passes, mod)
    @llvm(LLVMDisposePassManager, Cvoid, (Handle,), passes)
    return nothing
end

end
