# SPDX-License-Identifier: Apache-2.0

"""
What code may call when it runs as an ifunc, at the target: the functions of `<threechains/ifunc.h>`. They mean nothing
in this process. Texts are `c"..."`, as a string's address would be one of this process.
"""
module Target

export id, count_nodes, data, reply, forward, forward_as, inject, fail, @c_str

# A plain external symbol; an ordinary ccall would write an address of this process into the code.
"This node's number in its cluster."
id() = ccall("extern tc_id", llvmcall, UInt32, ())
"How many nodes the cluster has."
count_nodes() = ccall("extern tc_count", llvmcall, UInt32, ())

"A text that travels inside the code. Its `pointer` is one to bytes that end with a zero byte."
struct Text{S} end
macro c_str(text)
    return :(Text{$(QuoteNode(Symbol(text)))}())
end

@generated function Base.pointer(::Text{S}) where {S}
    bytes = codeunits(String(S))
    size = length(bytes) + 1
    quoted = join(("\\" * uppercase(string(byte; base = 16, pad = 2)) for byte in bytes)) * "\\00"
    name = "tc.text." * string(hash(S); base = 16)
    # Julia hands pointers to LLVM as integers until 1.11, and as pointers from 1.12 on.
    typed = VERSION < v"1.12-"
    element = "getelementptr inbounds ([$size x i8], [$size x i8]* @$name, i64 0, i64 0)"
    body = typed ? "ret i64 ptrtoint (i8* $element to i64)" : "ret ptr @$name"
    declaration = "@$name = private unnamed_addr constant [$size x i8] c\"$quoted\""
    if VERSION < v"1.6-"
        return :(Base.llvmcall(($declaration, $body), Ptr{UInt8}, Tuple{}))
    end
    result = typed ? "i64" : "ptr"
    whole = "$declaration\ndefine $result @entry() alwaysinline {\n$body\n}\n"
    return :(Base.llvmcall(($whole, "entry"), Ptr{UInt8}, Tuple{}))
end

"Data that the target exposes by name, as `(pointer, bytes)`; a null pointer when there is none."
function data(::Type{T}, name::Text) where {T}
    size = Ref{Csize_t}(0)
    found = ccall("extern tc_data", llvmcall, Ptr{T}, (Ptr{UInt8}, Ptr{Csize_t}), pointer(name), size)
    return found, size[]
end

"The answer to whoever made the call: bytes, or one plain value. 0 when it was accepted."
reply(bytes::Ptr, size::Integer) =
    ccall("extern tc_reply", llvmcall, Cint, (Ptr{Cvoid}, Csize_t), bytes, size % Csize_t)
function reply(value::T) where {T}
    place = Ref(value)
    return ccall("extern tc_reply", llvmcall, Cint, (Ptr{T}, Csize_t), place, sizeof(T) % Csize_t)
end

"This ifunc goes on to another node, and the duty to answer with it. 0 when it was accepted."
forward(node::Integer, payload::Ptr, size::Integer) =
    ccall("extern tc_forward", llvmcall, Cint, (UInt32, Ptr{Cvoid}, Csize_t), node % UInt32, payload, size % Csize_t)
"The same with another ifunc, which answers in the place of this one."
forward_as(node::Integer, name::Text, payload::Ptr, size::Integer) =
    ccall("extern tc_forward_as", llvmcall, Cint, (UInt32, Ptr{UInt8}, Ptr{Cvoid}, Csize_t), node % UInt32,
          pointer(name), payload, size % Csize_t)
"Another ifunc goes to a node; nobody waits for it."
inject(node::Integer, name::Text, payload::Ptr, size::Integer) =
    ccall("extern tc_inject", llvmcall, Cint, (UInt32, Ptr{UInt8}, Ptr{Cvoid}, Csize_t), node % UInt32,
          pointer(name), payload, size % Csize_t)

"The call failed, with a number and a sentence. Return after it."
fail(code::Integer, message::Text) =
    ccall("extern tc_fail", llvmcall, Cvoid, (Int32, Ptr{UInt8}), code % Int32, pointer(message))
"A line in the node's log: 0 debug, 1 info, 2 warning, 3 error."
log(level::Integer, message::Text) =
    ccall("extern tc_log", llvmcall, Cvoid, (Cint, Ptr{UInt8}), level % Cint, pointer(message))

"""
    View(pointer, count)

An array over memory that the code was given, with bounds checks and no allocation: `View(Ptr{Float64}(payload), 8)[9]`
is a failed call with code -3 (`TC_FAIL_BOUNDS`). `@inbounds` leaves the check out.
"""
struct View{T} <: DenseVector{T}
    pointer::Ptr{T}
    count::Int
end
export View
Base.size(view::View) = (view.count,)
Base.length(view::View) = view.count
Base.IndexStyle(::Type{<:View}) = IndexLinear()
Base.pointer(view::View) = view.pointer
Base.@propagate_inbounds function Base.getindex(view::View, index::Int)
    @boundscheck checkbounds(view, index)
    return unsafe_load(view.pointer, index)
end
Base.@propagate_inbounds function Base.setindex!(view::View{T}, value, index::Int) where {T}
    @boundscheck checkbounds(view, index)
    unsafe_store!(view.pointer, convert(T, value), index)
    return view
end

end
