# SPDX-License-Identifier: Apache-2.0
#
# The Chaser of chaser.c in Julia, for the same tables and payloads: `ifunc build chaser.jl --with return_result.ifunc`.
using ThreeChains
using ThreeChains.Target

struct Chase
    address::UInt64
    depth::UInt32
    destination::UInt32
end
const TO_CALLER = typemax(UInt32)
const NOT_FOUND = Cint(2)  # TC_ERR_NOT_FOUND

@inline function finish(chase, address)
    if chase.destination == TO_CALLER
        reply(address) == 0 || fail(5, c"whoever asked is gone")
    else
        place = Ref(address)
        sent = GC.@preserve place inject(chase.destination, c"return_result",
                                         Base.unsafe_convert(Ptr{UInt64}, place), sizeof(UInt64))
        sent == 0 || fail(5, c"return_result cannot be sent to the destination")
    end
    return nothing
end

@ifunc function chaser(payload::Ptr{Chase}, size::Csize_t)
    size == sizeof(Chase) || return fail(1, c"a chase is 16 bytes: address, depth, destination")
    shard, bytes = data(UInt64, c"chase-table")
    entries = (bytes >> 3) % UInt64
    (shard == C_NULL || entries == 0) && return fail(2, c"this node exposes no chase-table")
    chase = unsafe_load(payload)
    first = id() * entries
    address, depth = chase.address, chase.depth
    while depth > 0
        offset = address - first  # huge for addresses below ours
        offset < entries || break
        address = unsafe_load(shard + 8 * offset)
        depth -= UInt32(1)
    end
    depth == 0 && return finish(chase, address)
    unsafe_store!(payload, Chase(address, depth, chase.destination))
    owner = div(address, entries)
    sent = owner <= typemax(UInt32) ? forward(owner, payload, sizeof(Chase)) : NOT_FOUND
    if sent == NOT_FOUND
        fail(3, c"the address lies behind the table's end")
    elseif sent != 0
        fail(4, c"the server of the next entry cannot be reached")
    end
    return nothing
end
