# SPDX-License-Identifier: Apache-2.0

"""
An answer that will come. `fetch(future)` gives its bytes, `fetch(future, Float64)` one value, `fetch(future,
Vector{Float64})`
an array; `wait` only waits, `isready` looks. `timeout` is in seconds.
"""
mutable struct Future
    node::Node
    pointer::Ptr{Cvoid}
    function Future(node, pointer)
        return finalizer(free, new(node, pointer))
    end
end

function free(future::Future)
    future.pointer == C_NULL && return nothing
    @tc(tc_future_free, Cvoid, (Ptr{Cvoid},), future.pointer)
    future.pointer = C_NULL
    return nothing
end

Base.isready(future::Future) = @tc(tc_future_ready, Cint, (Ptr{Cvoid},), future.pointer) != 0

"Waits, in short turns, so that other tasks of this process (a node that serves) get theirs."
function Base.wait(future::Future; timeout = 10.0)
    ends = time() + timeout
    turn = UInt32(0)
    while true
        if @tc(tc_future_wait, Cint, (Ptr{Cvoid}, UInt32), future.pointer, turn) == 0
            status = @tc(tc_future_status, Cint, (Ptr{Cvoid},), future.pointer)
            status == 0 && return nothing
            throw(failure(future, status))
        end
        time() > ends && throw(RemoteError("timeout", "no answer came within $timeout s"))
        yield()
        turn = UInt32(1)
    end
end

function failure(future, status)
    code = @tc(tc_future_code, Int32, (Ptr{Cvoid},), future.pointer)
    node = @tc(tc_future_node, UInt32, (Ptr{Cvoid},), future.pointer)
    return RemoteError(status_name(status), unsafe_string(@tc(tc_future_error, Cstring, (Ptr{Cvoid},),
        future.pointer)), code,
                       node)
end

function Base.fetch(future::Future; timeout = 10.0)
    wait(future; timeout = timeout)
    size = Ref{Csize_t}(0)
    bytes = @tc(tc_future_bytes, Ptr{UInt8}, (Ptr{Cvoid}, Ptr{Csize_t}), future.pointer, size)
    return bytes == C_NULL ? UInt8[] : copy(unsafe_wrap(Array, bytes, Int(size[])))
end
Base.fetch(future::Future, ::Type{Vector{T}}; timeout = 10.0) where {T} =
    collect(reinterpret(T, fetch(future; timeout = timeout)))
function Base.fetch(future::Future, ::Type{T}; timeout = 10.0) where {T}
    bytes = fetch(future; timeout = timeout)
    length(bytes) == sizeof(T) ||
        throw(RemoteError("invalid", "the answer has $(length(bytes)) bytes, and a $T has $(sizeof(T))"))
    return only(reinterpret(T, bytes))
end
Base.fetch(future::Future, ::Type{String}; timeout = 10.0) = String(fetch(future; timeout = timeout))
