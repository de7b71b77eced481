# SPDX-License-Identifier: Apache-2.0

"""
    Ifunc(name; main, payload_size = nothing, payload_init = nothing, bundled = [], concurrent = false)

Functions that travel under one name. `main(payload, size, target_args)` runs at the target: it takes the first of these
arguments, with the pointer types that it declares (`Ptr{Float64}`), and what it returns is the answer, if anything.
`payload_size` and `payload_init` run at the source and build the payload, in the forms of docs/ifunc-abi.md.
`bundled`
are `.ifunc` files that travel along. `concurrent` says that a node may run it at the same time as other code: it writes
no data that other code uses, and reads none that other code writes, but by atomic operations.
"""
struct Ifunc
    name::String
    main::Function
    payload_size::Union{Function,Nothing}
    payload_init::Union{Function,Nothing}
    bundled::Vector{String}
    concurrent::Bool
end
Ifunc(name; main, payload_size = nothing, payload_init = nothing, bundled = String[], concurrent = false) =
    Ifunc(String(name), main, payload_size, payload_init, bundled, concurrent)
Base.show(io::IO, ifunc::Ifunc) = print(io, "Ifunc(", ifunc.name, ")")

"The ifuncs that `@ifunc` declared, by name, for `ifunc build FILE.jl`."
const declared = Dict{String,Ifunc}()
declare(ifunc) = declared[ifunc.name] = ifunc

"""
    @ifunc function name(payload::Ptr{T}, size::Csize_t, target_args::Ptr{U}) ... end
    @ifunc concurrent function name(...) ... end
    @ifunc name main = f payload_size = g payload_init = h concurrent = true

Declares an ifunc and makes `name` an [`Ifunc`](@ref): of one function, or of three (as in the 2022 talk). `concurrent`:
see there.
"""
macro ifunc(definition)
    return of_function(definition, false)
end
macro ifunc(name::Symbol, parts...)
    name === :concurrent && length(parts) == 1 && defines_function(parts[1]) && return of_function(parts[1], true)
    keywords = [Expr(:kw, part.args...) for part in parts]
    return esc(:(const $name = $declare($Ifunc($(String(name)); $(keywords...)))))
end

"Not so `main = f`, which is a part of an ifunc."
defines_function(part) = Meta.isexpr(part, (:function, :(=))) && !(part.args[1] isa Symbol)

function of_function(definition, concurrent)
    Meta.isexpr(definition, (:function, :(=))) || error("@ifunc takes a function, or a name and main = f ...")
    head = definition.args[1]
    typed = Meta.isexpr(head, :(::))
    signature = typed ? head.args[1] : head
    Meta.isexpr(signature, :call) || error("@ifunc: where-clauses have no concrete types; write them out")
    name = signature.args[1]
    hidden = gensym(name)
    renamed = Expr(:call, hidden, signature.args[2:end]...)
    definition = Expr(definition.head, typed ? Expr(:(::), renamed, head.args[2]) : renamed, definition.args[2:end]...)
    return esc(quote
        $definition
        const $name = $declare($Ifunc($(String(name)); main = $hidden, concurrent = $concurrent))
    end)
end

emit_bitcode(ifunc::Ifunc, path) =
    emit_bitcode(entries_of(ifunc.name, ifunc.main, ifunc.payload_size, ifunc.payload_init), path, ifunc.concurrent)

"Where the `ifunc` command is: `\$TC_IFUNC`, beside the library in use, or on the path."
function tool()
    haskey(ENV, "TC_IFUNC") && return ENV["TC_IFUNC"]
    beside = joinpath(dirname(dirname(get(ENV, "TC_LIBRARY", ""))), "bin", "ifunc")
    isfile(beside) && return beside
    found = Sys.which("ifunc")
    found === nothing && throw(IfuncError("the command 'ifunc' is not on the path; install Three-Chains, or set TC_IFUNC"))
    return found
end

"""
    build(ifunc, file = "NAME.ifunc"; targets = ["x86_64-linux-gnu", "aarch64-linux-gnu"], libraries = [], options =
``) -> file

Makes the bundle. `libraries` are those that it calls (`"m"`), `options` more of `ifunc build`'s. What cannot travel
is an [`IfuncError`](@ref) with the place and what to do instead.
"""
function build(ifunc::Ifunc, file = ifunc.name * ".ifunc"; targets = ["x86_64-linux-gnu", "aarch64-linux-gnu"],
               libraries = String[], options = ``)
    mktempdir() do directory
        bitcode = emit_bitcode(ifunc, joinpath(directory, "julia.bc"))
        write(joinpath(directory, "julia.deps"), join(libraries, "\n"))
        triples = collect(Iterators.flatten(("--target", target) for target in targets))
        along = collect(Iterators.flatten(("--with", one) for one in ifunc.bundled))
        words = IOBuffer()
        command = `$(tool()) build $bitcode --name $(ifunc.name) $triples $along $options -o $file`
        success(pipeline(command; stderr = words)) || throw(IfuncError(rstrip(String(take!(words)))))
    end
    return file
end

"""
    build_main(arguments)

What `ifunc build FILE.jl` runs: `FILE --name NAME --target TRIPLE -o OUT.bc`. The file is run, and of the ifuncs that
it declares the one called NAME is written as bitcode for this machine's processor, whatever TRIPLE is: `ifunc build`
makes other processors' of it.
"""
function build_main(arguments)
    options, files = Dict{String,String}(), String[]
    rest = copy(arguments)
    while !isempty(rest)
        word = popfirst!(rest)
        startswith(word, "-") ? (options[word] = popfirst!(rest)) : push!(files, word)
    end
    try
        Base.include(Module(:IfuncSource), abspath(only(files)))
        name = options["--name"]
        haskey(declared, name) || throw(IfuncError("$(files[1]): declares no ifunc '$name'; there is " *
                                                   "$(isempty(declared) ? "none" : join(sort!(collect(keys(declared))), ", "))"))
        Base.invokelatest(emit_bitcode, declared[name], options["-o"])
    catch error
        println(stderr, "julia: ", sprint(showerror, error isa LoadError ? error.error : error))
        exit(65)  # EX_DATAERR: the source is at fault, not this package
    end
    return nothing
end
