# SPDX-License-Identifier: Apache-2.0
#
# The same ifunc in Julia and in C at one node, called in turns: scripts/julia bindings/julia/bench/beside_c.jl
# Prints the median time of a call in us, with quartiles, and the median of Julia's time over C's within a pair of
# calls.

using ThreeChains
using ThreeChains.Target

@ifunc function dot_named()
    numbers, bytes = data(Float64, c"numbers")
    half = (bytes >> 4) % Int
    sum = 0.0
    @inbounds @simd for i in 1:half
        sum += unsafe_load(numbers, i) * unsafe_load(numbers, i + half)
    end
    return sum
end

const HERE = @__DIR__
const ROOT = abspath(joinpath(HERE, "../../.."))
const chaser = include(joinpath(ROOT, "examples/05-pointer-chase/chaser.jl"))
const COUNT, ENTRIES, DEPTH = 1 << 17, 1 << 12, UInt32(20_000)
const ROUNDS = parse(Int, get(ENV, "TC_ROUNDS", "400"))

function quartiles(values)
    sorted = sort(values)
    return [sorted[clamp(round(Int, part * length(sorted)), 1, length(sorted))] for part in (0.25, 0.5, 0.75)]
end

"One random cycle through all addresses (Sattolo's algorithm)."
function cycle(count)
    next = collect(UInt64(0):UInt64(count - 1))
    for i in count:-1:2
        j = rand(1:(i - 1))
        next[i], next[j] = next[j], next[i]
    end
    return next
end

function microseconds(endpoint, ifunc, arguments)
    start = time_ns()
    future = call(endpoint, ifunc, arguments)
    wait(future)
    return (time_ns() - start) / 1e3
end

function compare(name, endpoint, julia, c, arguments)
    for _ in 1:50, ifunc in (julia, c)
        microseconds(endpoint, ifunc, arguments)
    end
    sleep(1)  # until the target has compiled both for its CPU
    times = [(microseconds(endpoint, julia, arguments), microseconds(endpoint, c, arguments)) for _ in 1:ROUNDS]
    rounded(values) = join(round.(quartiles(values); digits = 2), " / ")
    println("$name: Julia $(rounded(first.(times))) us, C $(rounded(last.(times))) us, ratio $(rounded([j / c for (j, c) in times]))")
end

function main()
    directory = mktempdir()
    write(joinpath(directory, "numbers"), rand(COUNT))
    write(joinpath(directory, "table"), cycle(ENTRIES))
    tool, ready = ThreeChains.tool(), joinpath(directory, "ready")
    run(`$tool build $HERE/dot_named.c -o $directory/c_dot.ifunc`)
    chase_directory = joinpath(ROOT, "examples/05-pointer-chase")
    run(`$tool build $chase_directory/return_result.c -o $directory/return_result.ifunc`)
    along = `--with $directory/return_result.ifunc`
    run(`$tool build $chase_directory/chaser.c $along -o $directory/c_chaser.ifunc`)
    build(dot_named, "$directory/julia_dot.ifunc")
    build(chaser, "$directory/julia_chaser.ifunc"; options = along)
    server = run(`$tool serve --ready-file $ready --data numbers=$directory/numbers:ro --data chase-table=$directory/table:ro`;
                 wait = false)
    try
        while !isfile(ready)
            sleep(0.01)
        end
        node = Node()
        endpoint = connect(node, strip(read(ready, String)))
        code(name) = register(node, "$directory/$name.ifunc")
        compare("dot product of $(COUNT ÷ 2) pairs", endpoint, code("julia_dot"), code("c_dot"), nothing)
        chase = (UInt64(5), DEPTH, typemax(UInt32))
        compare("chase of $DEPTH steps", endpoint, code("julia_chaser"), code("c_chaser"), chase)
        close(node)
    finally
        kill(server)
        wait(server)
    end
end

main()
