# SPDX-License-Identifier: Apache-2.0
#
# From Julia functions to LLVM bitcode for this machine's kind of processor, without vectors: the target vectorises
# for the CPU that it has. `ifunc build` makes the bitcode fit to travel, for this processor and for others.

"""
    emit_bitcode(entries, path, concurrent)

Compiles the entry points and all that they call, and writes bitcode for this machine's processor to `path`. With the
word for `ifunc build` that it is concurrent code, if it is. On Julia 1.5 by Julia's own code generator; on 1.10 and newer load GPUCompiler and LLVM first, whose extension takes over.
"""
function emit_bitcode(entries::Vector{Entry}, path::AbstractString, concurrent::Bool)
    VERSION < v"1.6-" && return emit_native(entries, path, concurrent)
    hook = emitter[]
    hook === nothing && throw(IfuncError("Julia $VERSION emits code through GPUCompiler: `using GPUCompiler, LLVM` before " *
                                         "ThreeChains.build (Julia 1.10 or newer)"))
    return hook(entries, path, concurrent)
end

"The constant that TC_CONCURRENT of `<threechains/ifunc.h>` defines: 1, of 32 bits."
const CONCURRENT = "tc_concurrent"

"What the GPUCompiler extension puts in."
const emitter = Ref{Any}(nothing)

method_instance(entry::Entry) = method_instance(entry.callable, Tuple{entry.arguments...})
function method_instance(f, types)
    method = which(f, types)
    signature = Tuple{typeof(f),types.parameters...}
    (matched, sparams) = ccall(:jl_type_intersection_with_env, Any, (Any, Any), signature, method.sig)
    return ccall(:jl_specializations_get_linfo, Ref{Core.MethodInstance}, (Any, Any, Any), method, matched, sparams)
end

function emit_native(entries, path, concurrent)
    instances = [method_instance(entry) for entry in entries]
    params = Base.CodegenParams(; track_allocations = false, code_coverage = false, static_alloc = false,
                                prefer_specsig = true)
    native = ccall(:jl_create_native, Ptr{Cvoid}, (Vector{Core.MethodInstance}, Base.CodegenParams), instances, params)
    mod = ccall(:jl_get_llvm_module, Ptr{Cvoid}, (Ptr{Cvoid},), native)
    context = LLVMC.@llvm(LLVMGetModuleContext, Ptr{Cvoid}, (Ptr{Cvoid},), mod)
    for (entry, instance) in zip(entries, instances)
        add_entry(mod, context, entry, compiled_function(native, instance))
    end
    # Before, for an exception that holds something is an object, and Julia would keep a frame for its collector in
    # every call; after, for the calls that have come into the entries.
    lower_throws(mod, context, Entry[])
    optimise(mod, context, Set(entry.symbol for entry in entries))
    lower_throws(mod, context, entries)
    LLVMC.run_passes(mod) do passes
        LLVMC.@llvm(LLVMAddGlobalDCEPass, Cvoid, (Ptr{Cvoid},), passes)
        LLVMC.@llvm(LLVMAddStripDeadPrototypesPass, Cvoid, (Ptr{Cvoid},), passes)
    end
    check_travels(mod)
    concurrent && add_constant(mod, context, CONCURRENT)
    LLVMC.@llvm(LLVMWriteBitcodeToFile, Cint, (Ptr{Cvoid}, Cstring), mod, path) == 0 ||
        throw(IfuncError("$path cannot be written"))
    return path
end

"The function with C's calling convention that Julia made of a method instance."
function compiled_function(native, instance)
    boxed, plain = Ref{Int32}(0), Ref{Int32}(0)
    ccall(:jl_get_function_id, Cvoid, (Ptr{Cvoid}, Any, Ptr{Int32}, Ptr{Int32}), native, instance.cache, boxed, plain)
    plain[] > 0 || throw(IfuncError("$(instance.def.name) is not compiled to plain code: its types are not known " *
                                    "(see @code_warntype)"))
    return ccall(:jl_get_llvm_function, Ptr{Cvoid}, (Ptr{Cvoid}, UInt32), native, plain[] - 1)
end

const H = Handle

"A constant of 32 bits that is 1, for others to see."
function add_constant(mod, context, name)
    int = LLVMC.@llvm(LLVMIntTypeInContext, H, (H, Cuint), context, 32)
    constant = LLVMC.@llvm(LLVMAddGlobal, H, (H, H, Cstring), mod, int, name)
    LLVMC.@llvm(LLVMSetInitializer, Cvoid, (H, H), constant, LLVMC.@llvm(LLVMConstInt, H, (H, UInt64, Cint), int, 1, 0))
    LLVMC.@llvm(LLVMSetGlobalConstant, Cvoid, (H, Cint), constant, 1)
    return nothing
end

"Julia passes pointers as integers; the ifunc ABI wants pointers."
function add_entry(mod, context, entry, compiled)
    bits(n) = LLVMC.@llvm(LLVMIntTypeInContext, H, (H, Cuint), context, n)
    pointer = LLVMC.@llvm(LLVMPointerType, H, (H, Cuint), bits(8), 0)
    kinds = H[type <: Ptr ? pointer : bits(8 * sizeof(type)) for type in entry.arguments]
    result = entry.result === Nothing ? LLVMC.@llvm(LLVMVoidTypeInContext, H, (H,), context) : bits(8 *
        sizeof(entry.result))
    type = LLVMC.@llvm(LLVMFunctionType, H, (H, Ptr{H}, Cuint, Cint), result, kinds, length(kinds), 0)
    f = LLVMC.@llvm(LLVMAddFunction, H, (H, Cstring, H), mod, entry.symbol, type)
    block = LLVMC.@llvm(LLVMAppendBasicBlockInContext, H, (H, H, Cstring), context, f, "entry")
    builder = LLVMC.@llvm(LLVMCreateBuilderInContext, H, (H,), context)
    LLVMC.@llvm(LLVMPositionBuilderAtEnd, Cvoid, (H, H), builder, block)
    arguments = H[]
    for (k, argument) in enumerate(entry.arguments)
        given = LLVMC.@llvm(LLVMGetParam, H, (H, Cuint), f, k - 1)
        argument <: Ptr && (given = LLVMC.@llvm(LLVMBuildPtrToInt, H, (H, H, H, Cstring), builder, given, bits(64), ""))
        push!(arguments, given)
    end
    call = LLVMC.@llvm(LLVMBuildCall, H, (H, H, Ptr{H}, Cuint, Cstring), builder, compiled, arguments,
        length(arguments), "")
    if entry.result === Nothing
        LLVMC.@llvm(LLVMBuildRetVoid, H, (H,), builder)
    else
        LLVMC.@llvm(LLVMBuildRet, H, (H, H), builder, call)
    end
    LLVMC.@llvm(LLVMDisposeBuilder, Cvoid, (H,), builder)
    return nothing
end

"Julia's own passes, which turn its kinds of pointers and allocations into plain code."
function optimise(mod, context, names)
    defined = [f for f in LLVMC.functions(mod) if !LLVMC.is_declaration(f)]
    # Vectors made here would be this CPU's for ever: vectorisers leave functions with this attribute alone.
    foreach(f -> LLVMC.add_attribute(f, context, "noimplicitfloat"), defined)
    # An exception leaves an entry by a return, so whatever may throw must stand in the entry itself.
    hidden = filter(f -> !(LLVMC.name(f) in names) && !LLVMC.has_attribute(f, "noinline") && !never_returns(f), defined)
    foreach(f -> LLVMC.add_attribute(f, context, "alwaysinline"), hidden)
    LLVMC.run_passes(mod) do passes
        LLVMC.@llvm(LLVMAddGlobalDCEPass, Cvoid, (Ptr{Cvoid},), passes)
        LLVMC.@llvm(LLVMAddAlwaysInlinerPass, Cvoid, (Ptr{Cvoid},), passes)
        ccall(:jl_add_optimization_passes, Cvoid, (Ptr{Cvoid}, Cint, Cint), passes, 2, 1)
        LLVMC.@llvm(LLVMAddGlobalDCEPass, Cvoid, (Ptr{Cvoid},), passes)
    end
    foreach(f -> LLVMC.remove_attribute(f, "noimplicitfloat"), LLVMC.functions(mod))
    return nothing
end
