# SPDX-License-Identifier: Apache-2.0
"""A node under a code budget: what it evicts it really frees."""

import pytest

import kit


@pytest.mark.release_only
@pytest.mark.measured
def test_ten_thousand_ifuncs_leave_memory_and_mappings_flat(t):
    counter = t.write("counter", b"\0" * 8)
    node = t.serve("--no-bitcode", "--code-budget", str(16 * 1024 * 1024), "--data", f"counter={counter}",
                   "--target-args-data", "counter", env=kit.SHM)

    def send(count):
        done = t.run(str(kit.BUILD / "bin/tc_many_ifuncs"), node.address, str(count), env=kit.SHM, seconds=60)
        assert done.code == 0, done

    send(10_000)  # the budget is full; from here on nothing may grow
    memory, mappings = node.memory_kib(), node.maps().count("\n")
    for _ in range(2):
        send(10_000)
    assert node.memory_kib() < memory + 2048, f"{memory} KiB resident before, {node.memory_kib()} after"
    assert node.maps().count("\n") < mappings + 20, f"{mappings} mappings before, {node.maps().count(chr(10))} after"
    assert node.memory_kib() < 48 * 1024, f"{node.memory_kib()} KiB resident under a budget of 16 MiB"
