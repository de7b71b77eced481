# SPDX-License-Identifier: Apache-2.0
"""Clusters of several kinds of processors: this one beside emulated aarch64 and riscv64 nodes (docs/heterogeneous.md).

Timings under emulation mean nothing, so none is looked at.
"""

import random
import struct

import pytest

import kit
from kit import ROOT, Machine

pytestmark = pytest.mark.mixed  # not part of the step `release`: see scripts/test

TCP, SHM = kit.TCP, kit.SHM
TARGETS = ["--target", "x86_64-linux-gnu", "--target", "aarch64-linux-gnu", "--target", "riscv64-linux-gnu"]
TABLE = "chase-table"
TO_CALLER = 2**32 - 1
SECONDS = 60  # for what takes an emulator one or two


def cluster(t, machines, *options, env=TCP, each=lambda i: ()):
    addresses = kit.free_addresses(len(machines))
    return [t.serve_member(addresses, i, "--stats", *options, *each(i), env=env, machine=machine)
            for i, machine in enumerate(machines)]


def send(t, machine, ifunc, node, *options, env=TCP):
    return t.run(*machine.command, "send", ifunc, node.address, "--timeout", "30000", *options, env=env, seconds=SECONDS)


def three_kinds():
    return Machine.native(), Machine.other("aarch64"), Machine.other("riscv64")


def answers(result):
    assert result.code == 0, result
    return struct.unpack(f"<{len(result.out.strip()) // 16}Q", bytes.fromhex(result.out.strip()))


# ---- Two kinds


def check_hello(t, client, server, env=TCP):
    node = t.serve("--listen", "127.0.0.1:0", env=env, machine=server)
    for _ in range(2):  # with its code, and the same from another client
        result = send(t, client, t.build("hello.c", *TARGETS), node, "--payload", "world", env=env)
        assert (result.code, result.out) == (0, "hello, world"), result


def test_an_x86_64_client_calls_an_aarch64_server(t):
    check_hello(t, Machine.native(), Machine.other("aarch64"))


def test_an_aarch64_client_calls_an_x86_64_server(t):
    check_hello(t, Machine.other("aarch64"), Machine.native())


def test_an_x86_64_client_calls_an_aarch64_server_over_shared_memory(t):
    check_hello(t, Machine.native(), Machine.other("aarch64"), env=SHM)


def test_an_x86_64_client_calls_a_riscv64_server(t):
    check_hello(t, Machine.native(), Machine.other("riscv64"))


def test_a_riscv64_client_calls_an_aarch64_server(t):
    check_hello(t, Machine.other("riscv64"), Machine.other("aarch64"))


def test_a_payload_function_runs_at_an_aarch64_source(t):
    increment = t.build(str(ROOT / "examples/01-increment/increment.c"))  # for x86-64 and aarch64
    counter = t.write("counter", bytes(8))
    node = t.serve("--listen", "127.0.0.1:0", "--data", f"counter={counter}", env=TCP)
    result = send(t, Machine.other("aarch64"), increment, node, "--hex", "05" + "00" * 7, "--hex-out")
    assert answers(result) == (5,), result


# ---- What broke where object code was patched: the three obstacles of the 2022 paper, section III.B


def check_code(t, machine, form):
    node = t.serve("--listen", "127.0.0.1:0", f"--no-{form}", "--allow-lib", "libm.so.6", "--allow-lib", "libomp.so.5",
                   env={**TCP, "OMP_NUM_THREADS": "2"}, machine=machine)
    native = Machine.native()
    assert answers(send(t, native, t.build("got.c", *TARGETS), node, "--hex-out")) == (704,)
    assert answers(send(t, native, t.build("parallel.c", *TARGETS, "--", "-fopenmp"), node, "--hex-out")) == (49995000,)
    assert answers(send(t, native, t.build("atomics.c", *TARGETS), node, "--payload", "x", "--hex-out")) == (25, 0)


def test_got_openmp_and_atomics_work_as_machine_code_on_x86_64(t):
    check_code(t, Machine.native(), "bitcode")


def test_got_openmp_and_atomics_work_as_bitcode_on_x86_64(t):
    check_code(t, Machine.native(), "object")


def test_got_openmp_and_atomics_work_as_machine_code_on_aarch64(t):
    check_code(t, Machine.other("aarch64"), "bitcode")


def test_got_openmp_and_atomics_work_as_bitcode_on_aarch64(t):
    check_code(t, Machine.other("aarch64"), "object")


def test_got_openmp_and_atomics_work_as_machine_code_on_riscv64(t):
    check_code(t, Machine.other("riscv64"), "bitcode")


def test_got_openmp_and_atomics_work_as_bitcode_on_riscv64(t):
    check_code(t, Machine.other("riscv64"), "object")


# ---- Code that an x86-64 helper compiles for nodes without LLVM


def check_compiled_elsewhere(t, name):
    """Bitcode alone, for a node that runs objects only; its helper has LLVM, and is an x86-64 machine."""
    aide = t.serve("--listen", "127.0.0.1:0", "--compile-for", "any", "--name", "aide", "--stats", env=TCP)
    node = t.serve("--listen", "127.0.0.1:0", "--no-bitcode", "--compile-at", aide.address, "--allow-lib", "libm.so.6",
                   env=TCP, machine=Machine.other(name))
    bitcode = [*TARGETS, "--no-object"]
    result = send(t, Machine.native(), t.build("hello.c", *bitcode), node, "--payload", "world")
    assert (result.code, result.out) == (0, "hello, world"), result
    assert answers(send(t, Machine.native(), t.build("got.c", *bitcode), node, "--hex-out")) == (704,)
    atomics = t.build("atomics.c", *bitcode)
    assert answers(send(t, Machine.native(), atomics, node, "--payload", "x", "--hex-out")) == (25, 0)
    assert aide.stop() == 0
    assert aide.stats["compiled-for-others"] == 3, aide.stats


def test_an_x86_64_helper_compiles_for_an_aarch64_node_without_llvm(t):
    check_compiled_elsewhere(t, "aarch64")


def test_an_x86_64_helper_compiles_for_a_riscv64_node_without_llvm(t):
    check_compiled_elsewhere(t, "riscv64")


# ---- Code that goes on


def check_ring(t, client, machines):
    nodes = cluster(t, machines)
    hop = t.build("hop.c", *TARGETS)
    for route in ["012012", "21021"]:
        result = send(t, client, hop, nodes[0], "--payload", route)
        assert (result.code, result.out) == (0, route[-1]), result
    for node in nodes:
        assert node.stop(30) == 0
    return nodes


def test_code_goes_round_three_kinds_of_processors(t):
    native, arm, riscv = three_kinds()
    nodes = check_ring(t, native, [native, arm, riscv])
    assert [node.stats["failures"] for node in nodes] == [0, 0, 0]
    assert sum(node.stats["slice-requests"] for node in nodes) >= 3, [node.stats for node in nodes]


def test_an_emulated_client_starts_the_round(t):
    native, arm, riscv = three_kinds()
    check_ring(t, riscv, [arm, native, riscv])


def check_chase(t, client, machines, depths):
    """A random cycle spread over the nodes, followed by the ifunc of example 5."""
    entries = 256
    order = list(range(entries * len(machines)))
    random.Random(7).shuffle(order)
    table = [0] * len(order)
    for here, there in zip(order, order[1:] + order[:1]):
        table[here] = there
    shards = [t.write(f"shard{i}", struct.pack(f"<{entries}Q", *table[i * entries:(i + 1) * entries]))
              for i in range(len(machines))]
    nodes = cluster(t, machines, each=lambda i: ("--data", f"{TABLE}={shards[i]}:ro"))
    chase = t.build(str(ROOT / "examples/05-pointer-chase/chaser.c"), *TARGETS)
    for start, depth in [(3, depth) for depth in depths]:
        expected = start
        for _ in range(depth):
            expected = table[expected]
        payload = struct.pack("<QII", start, depth, TO_CALLER).hex()
        result = send(t, client, chase, nodes[0], "--hex", payload, "--hops", "2000", "--hex-out")
        assert answers(result) == (expected,), (depth, result)


def test_a_pointer_chase_crosses_three_kinds_of_processors(t):
    native, arm, riscv = three_kinds()
    check_chase(t, native, [native, arm, riscv], [1, 64, 512])


def test_an_aarch64_client_chases_through_x86_64_servers(t):
    check_chase(t, Machine.other("aarch64"), [Machine.native(), Machine.native()], [300])


def test_an_x86_64_client_chases_through_aarch64_servers(t):
    arm = Machine.other("aarch64")
    check_chase(t, Machine.native(), [arm, arm], [300])


# ---- What cannot go on


def test_code_that_was_not_built_for_the_next_processor_is_refused_by_name(t):
    native, arm = Machine.native(), Machine.other("aarch64")
    nodes = cluster(t, [native, arm])
    hop = t.build("hop.c", "--target", "x86_64-linux-gnu")
    result = send(t, native, hop, nodes[0], "--payload", "1")
    assert result.code == 1 and "hop" in result.err and "aarch64" in result.err, result
    result = send(t, native, hop, nodes[1])
    assert result.code == 1 and "build it with --target aarch64" in result.err, result
