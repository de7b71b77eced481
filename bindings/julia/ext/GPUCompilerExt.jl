# SPDX-License-Identifier: Apache-2.0
#
# Code from Julia 1.10 and newer. Written from GPUCompiler's and LLVM.jl's documentation and not yet run: the tests have
# Julia 1.5 only, where src/emit.jl does the same without packages.

module GPUCompilerExt

using GPUCompiler
using LLVM
using ThreeChains: ThreeChains, Entry

struct Params <: AbstractCompilerParams end
const Job = CompilerJob{<:Any,Params}

"What GPUCompiler calls where Julia throws. `ifunc build` knows jl_throw_exception and makes it a failed call."
module Runtime
signal_exception() = (ccall("extern jl_throw_exception", llvmcall, Cvoid, ()); return)
malloc(size) = C_NULL
report_oom(size) = return
report_exception(exception) = return
report_exception_name(exception) = return
report_exception_frame(index, func, file, line) = return
end

GPUCompiler.runtime_module(::Job) = Runtime
GPUCompiler.runtime_slug(::Job) = "threechains"

function compile(entry::Entry)
    source = methodinstance(typeof(entry.callable), Tuple{entry.arguments...})
    config = CompilerConfig(NativeCompilerTarget(), Params(); kernel = false, name = entry.symbol * "_julia",
                            always_inline = true)
    code, meta = GPUCompiler.compile(:llvm, CompilerJob(source, config))
    add_entry(code, entry, meta.entry)
    return code
end

"The ifunc ABI's pointers around the compiled function, which takes integers for them before Julia 1.12."
function add_entry(mod, entry, compiled)
    kinds = LLVMType[type <: Ptr ? LLVM.PointerType() : LLVM.IntType(8 * sizeof(type)) for type in entry.arguments]
    result = entry.result === Nothing ? LLVM.VoidType() : LLVM.IntType(8 * sizeof(entry.result))
    f = LLVM.Function(mod, entry.symbol, LLVM.FunctionType(result, kinds))
    type = function_type(compiled)
    IRBuilder() do builder
        position!(builder, BasicBlock(f, "entry"))
        arguments = map(parameters(f), parameters(type)) do given, wanted
            value_type(given) == wanted ? given : ptrtoint!(builder, given, wanted)
        end
        answer = call!(builder, type, compiled, collect(LLVM.Value, arguments))
        entry.result === Nothing ? ret!(builder) : ret!(builder, answer)
    end
    return nothing
end

function emit(entries, path, concurrent)
    JuliaContext() do context
        mod = compile(first(entries))
        foreach(entry -> LLVM.link!(mod, compile(entry)), entries[2:end])
        if concurrent
            constant = GlobalVariable(mod, LLVM.Int32Type(), ThreeChains.CONCURRENT)
            initializer!(constant, ConstantInt(Int32(1)))
            constant!(constant, true)
        end
        open(io -> write(io, mod), path, "w")
    end
    return path
end

__init__() = (ThreeChains.emitter[] = emit; nothing)

end
