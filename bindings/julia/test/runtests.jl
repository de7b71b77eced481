# SPDX-License-Identifier: Apache-2.0
#
# Julia's functions at nodes that have no Julia, C's ifuncs sent from Julia, and a node in Julia. Run by tests/julia.

using Test
using ThreeChains
using ThreeChains.Target
include("functions.jl")

const IFUNCS = get(ENV, "TC_IFUNCS", joinpath(@__DIR__, "../../../build/release/ifuncs"))
const ECHO = joinpath(IFUNCS, "echo.ifunc")  # of C

# A node without Julia, which ends with this process.
function with_server(use, arguments...; tool = [ThreeChains.tool()])
    out = Pipe()
    server = run(pipeline(`$tool serve --listen 127.0.0.1:0 $arguments`; stdout = out, stderr = stderr);
                 wait = false)
    try
        address = nothing
        for line in eachline(out)
            found = match(r"([0-9.]+:[0-9]+)", line)
            found === nothing || (address = found.captures[1]; break)
        end
        return use(address)
    finally
        kill(server)
        wait(server)
    end
end

function refused(use)
    try
        use()
    catch error
        error isa IfuncError && return error.message
        rethrow()
    end
    return "it was accepted"
end

node = Node()

@testset "Julia functions run at a node that has no Julia" begin
    table = tempname()
    write(table, [1.5, 2.5, 3.5])
    with_server("--data", "table=$table", "--allow-lib", "libm.so.6") do address
        endpoint = connect(node, address)
        ask(ifunc, arguments, T) = fetch(call(endpoint, register(node, ifunc), arguments), T)
        @test ask(dot, [1.0, 2.0, 3.0, 4.0], Float64) == 11.0
        @test ask(pick, [3, 20, 30], Int64) == 30
        @test ask(divide, [17, 5], Int64) == 3
        @test ask(named, 2, Float64) == 2.5
        @test fetch(call(endpoint, register(node, ECHO), "from C"), String) == "from C"

        @test ask(triple, 14, Int64) == 42 && ask(increased, 41, Int64) == 42 && ask(decreased, 43, Int64) == 42

        longest_code = register(node, longest; libraries = ["m"])
        @test fetch(call(endpoint, longest_code, [3.0, 4.0]), Float64) == 5.0
        @test occursin("hypot", refused(() -> build(longest, tempname())))

        failed(ifunc, arguments) = try
            ask(ifunc, arguments, Int64)
        catch error
            error
        end
        out_of_bounds = failed(pick, [4, 20, 30])
        @test out_of_bounds isa RemoteError && out_of_bounds.code == -3
        @test occursin("pick", out_of_bounds.message) && occursin("bounds", out_of_bounds.message)
        @test failed(divide, [17, 0]).code == -6
        @test failed(named, 9).code == -3
        @test fetch(call(endpoint, register(node, pick), [2, 5]), Int64) == 5  # the node goes on after failures

        missing_table = failed(named, 0)
        @test missing_table.code == -3
        future = call(endpoint, register(node, ECHO), "later")
        wait(future; timeout = 5)
        @test isready(future) && fetch(future, String) == "later"
        send(endpoint, register(node, pick), [7, 1])
        @test_throws RemoteError flush(endpoint)
    end
end

@testset "an emulated aarch64 node runs Julia functions" begin
    if haskey(ENV, "TC_AARCH64_IFUNC")
        tcp = Node(transport = "tcp", trust_network = "127.0.0.0/8")
        with_server("--transport", "tcp", "--trust-network", "127.0.0.0/8"; tool = split(ENV["TC_AARCH64_IFUNC"])) do address
            endpoint = connect(tcp, address; timeout = 60)
            ask(ifunc, arguments, T) = fetch(call(endpoint, register(tcp, ifunc), arguments), T; timeout = 60)
            @test ask(dot, [1.0, 2.0, 3.0, 4.0], Float64) == 11.0
            @test ask(pick, [3, 20, 30], Int64) == 30
            @test_throws RemoteError ask(pick, [9, 20, 30], Int64)
        end
        close(tcp)
    else
        println("SKIP: an aarch64 node: there is no build/aarch64/bin/ifunc, or no qemu-aarch64-static")
    end
end

@testset "concurrent code is marked in its bundle" begin
    shown(ifunc) = read(`$(ThreeChains.tool()) inspect --json $(build(ifunc, joinpath(mktempdir(), "code.ifunc")))`, String)
    for ifunc in (triple, increased, decreased)
        @test occursin("\"concurrent\": true", shown(ifunc))
    end
    @test occursin("\"concurrent\": false", shown(pick))
end

@testset "a node with several threads runs concurrent and ordinary functions" begin
    with_server("--threads", "3") do address
        endpoint = connect(node, address)
        codes = [register(node, ifunc) for ifunc in (triple, increased, pick)]
        futures = [call(endpoint, code, argument) for _ in 1:20 for (code, argument) in zip(codes, (14, 41, [2, 42]))]
        @test all(fetch(future, Int64) == 42 for future in futures)
    end
end

# The chase of examples/05-pointer-chase: one cycle through all addresses, in equal shards.
function chase_by(file, table, shards, chases)
    directory = mktempdir()
    for k in 0:(shards - 1)
        write(joinpath(directory, "shard$k.bin"), table[(k * length(table) ÷ shards + 1):((k + 1) *
            length(table) ÷ shards)])
    end
    hex(number) = bytes2hex(reinterpret(UInt8, [number]))
    sends = ["$(ThreeChains.tool()) send $file 0 --hex-out --hex $(hex(UInt64(a)))$(hex(UInt32(d)))ffffffff" for (a,
        d) in chases]
    return read(`$(ThreeChains.tool()) cluster $shards --data $("chase-table=$directory/shard{id}.bin:ro") --
                 sh -c $(join(sends, " && "))`, String)
end

@testset "the chaser in Julia finds what the chaser in C finds" begin
    chaser_file = joinpath(@__DIR__, "../../../examples/05-pointer-chase/chaser.jl")
    chaser = Base.include(Module(:Example), chaser_file)
    table = UInt64[(a * 7 + 3) % 30 for a in 0:29]
    chases = [(0, 1), (5, 40), (29, 7), (12, 0)]
    file = build(chaser, joinpath(mktempdir(), "chaser.ifunc"); options = `--with $IFUNCS/return_result.ifunc`)
    by_c = chase_by(joinpath(IFUNCS, "chaser.ifunc"), table, 3, chases)
    @test chase_by(file, table, 3, chases) == by_c
    walk(address, depth) = foldl((a, _) -> table[a + 1], 1:depth; init = UInt64(address))
    ends = [first(reinterpret(UInt64, hex2bytes(filter(isxdigit, line)))) for line in split(strip(by_c), '\n')]
    @test ends == [walk(a, d) for (a, d) in chases]
end

@testset "a node in Julia runs ifuncs on its arrays" begin
    counter = UInt64[40]
    holder = Node(threads = 2)  # the call runs on the other one
    ThreeChains.set_target_args(holder, counter)
    expose(holder, "table", [10.0, 20.0])
    task = ThreeChains.serve(holder)
    add = build(count_up, joinpath(mktempdir(), "count_up.ifunc"))
    client = run(`$(ThreeChains.tool()) send $add $(ThreeChains.address(holder)) --hex 0200000000000000`; wait = false)
    while !process_exited(client)
        sleep(0.005)
    end
    @test success(client)
    @test counter == [42]
    @test ThreeChains.stat(holder, "executed") == 1 && ThreeChains.stats(holder)["executed"] == 1
    close(holder)
    wait(task)
end

@testset "a keyring is read anew, and a wrong one changes nothing" begin
    keyring = joinpath(mktempdir(), "keyring")
    write(keyring, "")
    guarded = Node(keyring = keyring)
    @test ThreeChains.reload_keys(guarded) === guarded
    write(keyring, "nonsense\n")
    error = try
        ThreeChains.reload_keys(guarded)
    catch caught
        sprint(showerror, caught)
    end
    @test occursin("keyring, line 1", error)
    close(guarded)
end

@testset "payload functions run at the source" begin
    counter = UInt64[0]
    target = Node()
    ThreeChains.set_target_args(target, counter)
    registered = register(node, talk; targets = ["x86_64-linux-gnu"])
    ThreeChains.with_message(registered, UInt64(21)) do message
        size = Ref{Csize_t}(0)
        bytes = ThreeChains.@tc(tc_message_payload, Ptr{UInt64}, (Ptr{Cvoid}, Ptr{Csize_t}), message, size)
        @test size[] == 8 && unsafe_load(bytes) == 42
    end
    close(target)
end

const GLOBAL_ARRAY = [1, 2, 3]
not_constant = 3
@ifunc unstable(payload::Ptr{Int64}) = (unsafe_load(payload) > 0 ? 1 : 2.0)
@ifunc prints(payload::Ptr{Int64}) = (println(unsafe_load(payload)); nothing)
@ifunc allocates(payload::Ptr{Int64}) = length(zeros(unsafe_load(payload)))
@ifunc of_global(payload::Ptr{Int64}) = @inbounds GLOBAL_ARRAY[unsafe_load(payload)]
@ifunc of_variable(payload::Ptr{Int64}) = (not_constant + unsafe_load(payload); nothing)
@ifunc by_address(payload::Ptr{Int64}) = ccall(:labs, Int64, (Int64,), unsafe_load(payload))

@testset "what needs Julia at the target is refused with what to do instead" begin
    try_build(ifunc) = refused(() -> build(ifunc, tempname()))
    @test occursin("not a plain value", try_build(unstable)) && occursin("code_warntype", try_build(unstable))
    @test occursin("Target.log", try_build(prints))
    @test occursin("makes an object", try_build(allocates)) && occursin("runtests.jl:", try_build(allocates))
    @test occursin("Target.data", try_build(of_global)) && occursin("0x", try_build(of_global))
    @test occursin("a global is not const", try_build(of_variable))
    @test occursin("extern NAME", try_build(by_address))
    captured = [1]
    @test occursin("captures", refused(() -> build(Ifunc("f"; main = (p::Ptr{Int64}) -> captured[1]), tempname())))
    @test occursin("concrete", refused(() -> build(Ifunc("f"; main = p -> nothing), tempname())))
end

close(node)
