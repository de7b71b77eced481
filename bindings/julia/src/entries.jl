# SPDX-License-Identifier: Apache-2.0
#
# The entry points of the ifunc ABI around functions of the author's: what a target calls is C's signature, whatever
# the author wrote. An adapter has no fields, so nothing of this process is captured in it.

"`NAME_main` around `F`, whose arguments are the first of payload, size and target args, typed as `A` says."
struct Main{F,A<:Tuple} <: Function end

adapt(::Type{Ptr{T}}, given::Ptr{Cvoid}) where {T} = Ptr{T}(given)
adapt(::Type{T}, given::Csize_t) where {T<:Integer} = given % T

answer(::Nothing) = nothing
answer(value) = (Target.reply(value); nothing)

@generated function (::Main{F,A})(payload::Ptr{Cvoid}, size::Csize_t, target_args::Ptr{Cvoid}) where {F,A}
    given = (:payload, :size, :target_args)
    adapted = [:(adapt($(A.parameters[i]), $(given[i]))) for i in 1:length(A.parameters)]
    return quote
        answer($(F.instance)($(adapted...)))
        return nothing
    end
end

struct Entry
    symbol::String  # with the ifunc's name in front
    callable::Function
    arguments::Vector{Any}
    result::Type
end

"The types of the only method of `f`, which say how it is compiled."
function argument_types(f)
    found = methods(f)
    length(found) == 1 ||
        throw(IfuncError("$f has $(length(found)) methods, and an ifunc is one; give the one a name of its own"))
    signature = Base.unwrap_unionall(first(found).sig)
    types = collect(Any, signature.parameters[2:end])
    for type in types
        isconcretetype(type) || throw(IfuncError("$f takes an argument of type $type, which is not concrete; write the " *
                                                 "types of all arguments, such as Ptr{Float64} and Csize_t"))
    end
    return types
end

function check_singleton(f)
    Base.issingletontype(typeof(f)) && return nothing
    fields = join(string.(fieldnames(typeof(f))), ", ")
    throw(IfuncError("$f captures $fields of this process, which do not travel; pass them in the payload, or get them " *
                     "at the target with Target.data"))
end

const PAYLOAD_SIZE = Any[Ptr{Cvoid}, Csize_t]
const PAYLOAD_INIT = Any[Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, Csize_t]
const PAYLOAD_INIT_2022 = Any[Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, Ptr{Csize_t}]

function main_entry(name, f)
    check_singleton(f)
    types = argument_types(f)
    forms = (Ptr, Integer, Ptr)
    fits = length(types) <= 3 && all(types[i] <: forms[i] for i in 1:length(types))
    fits || throw(IfuncError("$name takes ($(join(types, ",
        "))); an ifunc takes the first of a pointer to the payload, its " *
                             "size, and a pointer to the target args"))
    results = Base.return_types(f, Tuple{types...})
    result = length(results) == 1 ? results[1] : Any
    result === Union{} || isbitstype(result) ||
        throw(IfuncError("$name returns $result, which is not a plain value: its types are not stable, or it makes an " *
                         "object; see @code_warntype, and return a number, a tuple of numbers, or nothing"))
    return Entry(name * "_main", Main{typeof(f),Tuple{types...}}(), Any[Ptr{Cvoid}, Csize_t, Ptr{Cvoid}], Nothing)
end

function source_entry(symbol, f, types, result)
    check_singleton(f)
    found = argument_types(f)
    found == types || throw(IfuncError("$symbol is made of $f, which takes ($(join(found, ", "))); it must take " *
                                       "($(join(types, ", ")))"))
    Base.return_types(f, Tuple{types...}) == Any[result] ||
        throw(IfuncError("$f must return $result; write ::$result behind its arguments"))
    return Entry(symbol, f, types, result)
end

"All entry points of an ifunc: its main function, and the pair that builds payloads, in the form of 2021 or of 2022."
function entries_of(name, main, payload_size, payload_init)
    entries = [main_entry(name, main)]
    payload_size === payload_init === nothing && return entries
    (payload_size === nothing) != (payload_init === nothing) &&
        throw(IfuncError("$name: both payload_size and payload_init are needed to build a payload, or neither"))
    shrinks = argument_types(payload_init) == PAYLOAD_INIT_2022
    push!(entries, source_entry(name * (shrinks ? "_payload_bound" : "_payload_get_max_size"), payload_size,
        PAYLOAD_SIZE,
                                Csize_t))
    push!(entries, source_entry(name * "_payload_init", payload_init, shrinks ? PAYLOAD_INIT_2022 : PAYLOAD_INIT, Cint))
    return entries
end
