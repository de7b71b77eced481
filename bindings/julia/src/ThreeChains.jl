# SPDX-License-Identifier: Apache-2.0
"""
Julia functions as ifuncs, and nodes driven from Julia. docs/julia.md explains both.

Writing ifuncs: [`@ifunc`](@ref), [`Ifunc`](@ref), [`build`](@ref), and what injected code may call in
`ThreeChains.Target`.
Driving nodes: [`Node`](@ref), [`connect`](@ref), [`register`](@ref), [`call`](@ref), [`send`](@ref).
"""
module ThreeChains

import Libdl

export @ifunc, Ifunc, Node, RemoteError, IfuncError
export build, call, connect, expose, register, send

include("errors.jl")
include("target.jl")
include("entries.jl")
include("llvm.jl")
include("runtime_calls.jl")
include("emit.jl")
include("ifunc.jl")
include("library.jl")
include("node.jl")
include("future.jl")

function __init__()
    # Julia's garbage collector uses signals of its own, which UCX must not take for crashes.
    haskey(ENV, "UCX_ERROR_SIGNALS") || (ENV["UCX_ERROR_SIGNALS"] = "")
    return nothing
end

end
