# SPDX-License-Identifier: Apache-2.0
"""Nodes that reach each other by TCP alone: each in a network namespace of its own."""

import kit
from kit import TCP, inside


def test_a_call_crosses_the_network(t):
    (here, _), (there, address) = t.namespaces(2)
    hello = t.build("hello.c")
    node = t.serve("--listen", f"{address}:0", "--trust", "any", env=TCP, prefix=inside(there))
    assert node.address.startswith(address + ":"), node.address
    result = t.run(*inside(here), kit.IFUNC, "send", hello, node.address, "--payload", "network", env=TCP)
    assert (result.code, result.out) == (0, "hello, network"), result


def test_a_node_that_trusts_loopback_only_refuses_the_network(t):
    (here, _), (there, address) = t.namespaces(2)
    node = t.run(*inside(there), kit.IFUNC, "serve", "--listen", f"{address}:0")
    assert node.code == 2 and "--trust any" in node.err, node


def test_a_large_payload_crosses_the_network(t):
    (here, _), (there, address) = t.namespaces(2)
    source = t.write("size.c", "#include <threechains/ifunc.h>\n"
                     "void size_main(void *p, size_t n, void *a) {\n"
                     "  (void)a; unsigned char *b = p; uint64_t r[2] = {n, 0};\n"
                     "  for (size_t i = 0; i < n; ++i) r[1] += b[i];\n  tc_reply(r, sizeof r); }\n")
    payload = bytes(i * 7 % 251 for i in range(5_000_000))
    node = t.serve("--listen", f"{address}:0", "--trust", "any", env=TCP, prefix=inside(there))
    result = t.run(*inside(here), kit.IFUNC, "send", t.build(source), node.address, "--payload-file",
                   t.write("payload", payload), "--hex-out", env=TCP)
    expected = len(payload).to_bytes(8, "little") + sum(payload).to_bytes(8, "little")
    assert (result.code, result.out) == (0, expected.hex() + "\n"), result
