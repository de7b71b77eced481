# SPDX-License-Identifier: Apache-2.0

"""
    Node(; options...)

This process's place in the system, source and target in one. Options are those of docs/options.md (`ifunc options`),
with `_` for `-`: `Node(name = "reader", listen = "127.0.0.1:0", allow_lib = "m")`. `close` ends it.

A node belongs to one task at a time. It moves while its functions run, in [`poll`](@ref), and in the task of
[`serve`](@ref).
"""
mutable struct Node
    handle::Ptr{Cvoid}
    exposed::Dict{String,Any}  # kept alive
    kept::Vector{Any}          # until the node closes: calls on other threads may still use them
end

function Node(; options...)
    config, node = Ref{Ptr{Cvoid}}(C_NULL), Ref{Ptr{Cvoid}}(C_NULL)
    check(@tc(tc_config_create, Cint, (Ptr{Ptr{Cvoid}},), config))
    try
        for (key, value) in options
            words = value isa Bool ? (value ? "on" : "off") : string(value)
            check(@tc(tc_config_set, Cint, (Ptr{Cvoid}, Cstring, Cstring), config[], replace(String(key), "_" => "-"),
                words))
        end
        check(@tc(tc_node_create, Cint, (Ptr{Cvoid}, Ptr{Ptr{Cvoid}}), config[], node))
    finally
        @tc(tc_config_free, Cvoid, (Ptr{Cvoid},), config[])
    end
    return Node(node[], Dict{String,Any}(), [])
end

function Base.close(node::Node)
    node.handle == C_NULL && return nothing
    handle, node.handle = node.handle, C_NULL
    @tc(tc_node_free, Cvoid, (Ptr{Cvoid},), handle)
    return nothing
end
Base.isopen(node::Node) = node.handle != C_NULL
handle(thing) = thing.handle == C_NULL ? throw(RemoteError("closed", "the node is closed")) : thing.handle

"Where peers connect to."
address(node::Node) = unsafe_string(@tc(tc_node_address, Cstring, (Ptr{Cvoid},), handle(node)))

"""
    expose(node, name, array)

Gives injected code the memory of `array` by name, until the node closes. The array must not be resized.

A node with several threads waits up to ten seconds for calls that use what the name stood for before. Then it throws a
`RemoteError` with status `"busy"`: the new array counts, and the node keeps both alive.
"""
function expose(node::Node, name, array::Array{T}) where {T}
    isbitstype(T) || throw(ArgumentError("an array of $T has no plain memory"))
    status = @tc(tc_node_expose, Cint, (Ptr{Cvoid}, Cstring, Ptr{Cvoid}, Csize_t), handle(node), name, pointer(array),
                 sizeof(array))
    status == 0 || push!(node.kept, get(node.exposed, String(name), nothing))
    node.exposed[String(name)] = array
    check(status)
    return node
end

"What ifuncs get as target_args, until the node closes."
function set_target_args(node::Node, array::Array)
    push!(node.kept, array)
    @tc(tc_node_set_target_args, Cvoid, (Ptr{Cvoid}, Ptr{Cvoid}), handle(node), pointer(array))
    return node
end

"Runs what has come; never waits. Returns how many ifuncs ran."
function poll(node::Node)
    executed = Ref{Csize_t}(0)
    check(@tc(tc_node_poll, Cint, (Ptr{Cvoid}, Ptr{Csize_t}), handle(node), executed))
    return Int(executed[])
end

"Runs what comes within `timeout` seconds, asleep meanwhile, and returns after the first. Other tasks stand still."
function Base.wait(node::Node; timeout = 1.0)
    executed = Ref{Csize_t}(0)
    check(@tc(tc_node_wait, Cint, (Ptr{Cvoid}, UInt32, Ptr{Csize_t}), handle(node), round(UInt32, 1000timeout),
        executed))
    return Int(executed[])
end

"A task that runs the node until it closes. Other tasks get their turns; when idle it looks every millisecond."
function serve(node::Node)
    return @async begin
        while isopen(node)
            poll(node) > 0 ? yield() : sleep(0.001)
        end
    end
end

"Reads the keyring anew, as `ifunc serve` does on SIGHUP. A keyring that is wrong is an error, and the old one stays."
function reload_keys(node::Node)
    check(@tc(tc_node_reload_keys, Cint, (Ptr{Cvoid},), handle(node)))
    return node
end

"A number about the node; `stats(node)` has all, and docs/statistics.md says what they mean."
function stat(node::Node, name)
    value = Ref{UInt64}(0)
    check(@tc(tc_node_stat, Cint, (Ptr{Cvoid}, Cstring, Ptr{UInt64}), handle(node), name, value))
    return value[]
end

"All numbers about the node, by name."
function stats(node::Node)
    names = (unsafe_string(@tc(tc_statistic_name, Cstring, (Ptr{Cvoid},), @tc(tc_statistic_at, Ptr{Cvoid}, (Csize_t,), i)))
        for i in 0:(@tc(tc_statistic_count, Csize_t, ()) - 1))
    return Dict(name => stat(node, name) for name in names)
end

"The connection to one peer."
struct Endpoint
    node::Node
    pointer::Ptr{Cvoid}
end

"""
    connect(node, address; timeout = 10.0) -> Endpoint
"""
function connect(node::Node, address; timeout = 10.0)
    endpoint = Ref{Ptr{Cvoid}}(C_NULL)
    check(@tc(tc_node_connect, Cint, (Ptr{Cvoid}, Cstring, UInt32, Ptr{Ptr{Cvoid}}), handle(node), address,
              round(UInt32, 1000timeout), endpoint))
    return Endpoint(node, endpoint[])
end
function handle(endpoint::Endpoint)
    handle(endpoint.node)
    return endpoint.pointer
end

"Waits until the peer has run all that was sent; the first failure among it is a RemoteError."
Base.flush(endpoint::Endpoint; timeout = 10.0) =
    check(@tc(tc_endpoint_flush, Cint, (Ptr{Cvoid}, UInt32), handle(endpoint), round(UInt32, 1000timeout)))

"An ifunc that the node knows."
struct Registered
    node::Node
    pointer::Ptr{Cvoid}
end

"""
    register(node, ifunc)

`ifunc` is an [`Ifunc`](@ref), which is built for this; or the file of a bundle in any language; or a name on the
node's path.
"""
function register(node::Node, name::AbstractString)
    registered = Ref{Ptr{Cvoid}}(C_NULL)
    check(@tc(tc_ifunc_register, Cint, (Ptr{Cvoid}, Cstring, Ptr{Ptr{Cvoid}}), handle(node), name, registered))
    return Registered(node, registered[])
end
function register(node::Node, ifunc::Ifunc; arguments...)
    mktempdir() do directory
        register(node, build(ifunc, joinpath(directory, ifunc.name * ".ifunc"); arguments...))
    end
end

"What may be given as source args: nothing, text, an array of plain values, or one plain value."
bytes_of(::Nothing) = UInt8[]
bytes_of(text::AbstractString) = Vector{UInt8}(codeunits(String(text)))
bytes_of(array::Array{T}) where {T} = isbitstype(T) ? array : throw(ArgumentError("an array of $T has no plain memory"))
bytes_of(value::T) where {T} = isbitstype(T) ? [value] : throw(ArgumentError("a $T is not a plain value"))

function with_message(use, ifunc::Registered, arguments)
    bytes, message = bytes_of(arguments), Ref{Ptr{Cvoid}}(C_NULL)
    handle(ifunc.node)
    GC.@preserve bytes check(@tc(tc_message_create, Cint, (Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Ptr{Ptr{Cvoid}}),
        ifunc.pointer,
                                 pointer(bytes), sizeof(bytes), message))
    try
        return use(message[])
    finally
        @tc(tc_message_free, Cvoid, (Ptr{Cvoid},), message[])
    end
end

"""
    send(endpoint, ifunc, arguments = nothing)

Nobody waits for the answer; `flush` tells whether it failed.
"""
send(endpoint::Endpoint, ifunc::Registered, arguments = nothing) = with_message(ifunc, arguments) do message
    check(@tc(tc_endpoint_send, Cint, (Ptr{Cvoid}, Ptr{Cvoid}), handle(endpoint), message))
end

"""
    call(endpoint, ifunc, arguments = nothing; deadline = 0.0) -> Future

Sends the ifunc and asks for its answer, to come within `deadline` seconds (0: whenever).
"""
call(endpoint::Endpoint, ifunc::Registered, arguments = nothing; deadline = 0.0) = with_message(ifunc,
    arguments) do message
    future = Ref{Ptr{Cvoid}}(C_NULL)
    check(@tc(tc_endpoint_call, Cint, (Ptr{Cvoid}, Ptr{Cvoid}, UInt32, Ptr{Ptr{Cvoid}}), handle(endpoint), message,
              round(UInt32, 1000deadline), future))
    Future(endpoint.node, future[])
end
