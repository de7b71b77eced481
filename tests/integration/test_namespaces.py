# SPDX-License-Identifier: Apache-2.0
"""Nodes that reach each other by TCP alone: each in a network namespace of its own."""

import kit
from kit import TCP, inside


TRUSTED = ("--trust-network", "10.99.0.0/24")


def call(t, here, node, *options, env={}):
    return t.run(*inside(here), kit.IFUNC, "send", t.build("hello.c"), node.address, "--payload", "network", *options,
                 env=env)


def test_a_call_crosses_the_network_encrypted(t):
    (here, _), (there, address) = t.namespaces(2)
    node = t.serve("--listen", f"{address}:0", prefix=inside(there))
    assert node.address.startswith(address + ":"), node.address
    result = call(t, here, node, "--log", "debug")
    assert (result.code, result.out) == (0, "hello, network") and "frames go by tls" in result.err, result


def test_a_call_crosses_a_trusted_network_plainly(t):
    (here, _), (there, address) = t.namespaces(2)
    node = t.serve("--listen", f"{address}:0", *TRUSTED, prefix=inside(there))
    result = call(t, here, node, "--log", "debug", *TRUSTED, env=t.home("nobody").env)
    assert (result.code, result.out) == (0, "hello, network") and "frames go by tcp" in result.err, result


def test_on_a_network_that_the_node_alone_trusts_a_call_is_encrypted(t):
    (here, _), (there, address) = t.namespaces(2)
    node = t.serve("--listen", f"{address}:0", *TRUSTED, prefix=inside(there))
    result = call(t, here, node, "--log", "debug")
    assert (result.code, result.out) == (0, "hello, network") and "frames go by tls" in result.err, result


def test_a_user_of_the_keyring_is_served_across_the_network(t):
    (here, _), (there, address) = t.namespaces(2)
    ana = t.home("ana")
    t.own_home.trust("ana", ana)
    node = t.serve("--listen", f"{address}:0", prefix=inside(there))
    unsigned = call(t, here, node, env=ana.env)
    assert unsigned.code == 1 and "first contact" in unsigned.err, unsigned
    assert "ana (keyring, line 1) may run signed code only" in unsigned.err, unsigned
    signed = t.build("hello.c")
    assert ana.run("sign", signed, "--key", "default").code == 0
    result = t.run(*inside(here), kit.IFUNC, "send", signed, node.address, "--payload", "network", env=ana.env)
    assert (result.code, result.out, result.err) == (0, "hello, network", ""), result


def test_a_node_refuses_somebody_of_the_network_whose_key_it_does_not_know(t):
    (here, _), (there, address) = t.namespaces(2)
    node = t.serve("--listen", f"{address}:0", prefix=inside(there))
    result = call(t, here, node, env=t.home("stranger").env)
    assert result.code == 1 and "is in no line of the keyring" in result.err, result


def test_a_large_payload_crosses_the_network(t):
    (here, _), (there, address) = t.namespaces(2)
    source = t.write("size.c", "#include <threechains/ifunc.h>\n"
                     "void size_main(void *p, size_t n, void *a) {\n"
                     "  (void)a; unsigned char *b = p; uint64_t r[2] = {n, 0};\n"
                     "  for (size_t i = 0; i < n; ++i) r[1] += b[i];\n  tc_reply(r, sizeof r); }\n")
    payload = bytes(i * 7 % 251 for i in range(5_000_000))
    node = t.serve("--listen", f"{address}:0", env=TCP, prefix=inside(there))
    result = t.run(*inside(here), kit.IFUNC, "send", t.build(source), node.address, "--payload-file",
                   t.write("payload", payload), "--hex-out", env=TCP)
    expected = len(payload).to_bytes(8, "little") + sum(payload).to_bytes(8, "little")
    assert (result.code, result.out) == (0, expected.hex() + "\n"), result
