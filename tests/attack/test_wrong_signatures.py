# SPDX-License-Identifier: Apache-2.0
"""Code that is not signed as the node wants it: nobody's, somebody's who may not, or made to look like somebody's."""

import pathlib
import re
import signal

import pytest

import attack
import kit
from kit import TCP

PAST = "2020-01-01"
MAGIC, HEADER, SIGNATURE = b"TCS1", 5, 1 + 32 + 64


def signed(t, source, home, *names):
    """The ifunc, signed with keys of that home."""
    ifunc = t.build(source)
    for name in names or ["default"]:
        done = home.run("sign", ifunc, "--key", name)
        assert done.code == 0, done
    return ifunc


def parts(ifunc):
    """What is signed, and the section of signatures."""
    whole = pathlib.Path(ifunc).read_bytes()
    at = whole.rindex(MAGIC)
    assert len(whole) - at == HEADER + whole[at + 4] * SIGNATURE, "the section is as docs/wire-format.md says"
    return whole[:at], whole[at:]


class Scene:
    """A node, a peer that may have signed code run, and an author whose line has these fields."""

    def __init__(self, t, *fields, author=True, peer_fields=("run=signed",), settings=()):
        self.t, self.author, self.peer = t, t.home("author"), attack.acquainted(t, "peer", t.own_home)
        t.own_home.trust("peer", self.peer, *peer_fields)
        if author:
            t.own_home.trust("author", self.author, *fields)
        self.node = attack.ProgramNode(t, "127.0.0.1:0", *settings)

    def send(self, ifunc):
        return attack.call(self.t, self.peer, ifunc, self.node)

    def runs(self, ifunc):
        result = self.send(ifunc)
        assert (result.code, result.out) == (0, "hello, you"), result

    def refuses(self, ifunc, pattern):
        attack.says_one_line(self.send(ifunc), pattern)
        attack.logs_one_line(self.node, pattern)
        self.node.has_run_nothing()


def test_code_signed_by_one_key_may_arrive_through_another(t):
    scene = Scene(t)
    scene.runs(signed(t, "hello.c", scene.author))


def test_code_that_nobody_signed_does_not_run(t):
    Scene(t).refuses(t.build("hello.c"), r"code 'hello' \(\w+\) has no signature of a key in the keyring; "
                                         r"peer \(keyring, line 1\) may run signed code only")


def test_code_whose_signature_was_taken_off_does_not_run(t):
    scene = Scene(t)
    code, _ = parts(signed(t, "hello.c", scene.author))
    scene.refuses(t.write("hello.ifunc", code), "has no signature of a key in the keyring")


def test_a_signature_of_other_code_lets_nothing_run(t):
    scene = Scene(t)
    _, signature = parts(signed(t, "echo.c", scene.author))
    code, _ = parts(signed(t, "hello.c", scene.author))
    scene.refuses(t.write("hello.ifunc", code + signature),
                  r"keyring, line 2 \(author\): the signature is wrong: it is not one of this code")


@pytest.mark.parametrize("at", [0, 31, 32, 63])
def test_a_signature_in_which_a_bit_is_turned_lets_nothing_run(t, at):
    scene = Scene(t)
    code, signature = parts(signed(t, "hello.c", scene.author))
    turned = bytearray(signature)
    turned[HEADER + 1 + 32 + at] ^= 1
    scene.refuses(t.write("hello.ifunc", code + turned), r"\(author\): the signature is wrong")


def test_a_signature_under_the_name_of_another_key_lets_nothing_run(t):
    scene, stranger = Scene(t), t.home("stranger")
    _, ours = parts(signed(t, "hello.c", scene.author))
    code, theirs = parts(signed(t, "hello.c", stranger))
    key = slice(HEADER + 1, HEADER + 1 + 32)
    forged = bytearray(theirs)
    forged[key] = ours[key]
    scene.refuses(t.write("hello.ifunc", code + forged), r"\(author\): the signature is wrong")


def test_code_that_was_changed_after_it_was_signed_is_other_code(t):
    scene = Scene(t)
    code, signature = parts(signed(t, "hello.c", scene.author))
    at = code.index(b"hello, ")
    other = t.write("hello.ifunc", code[:at] + b"HELLO, " + code[at + 7:] + signature)
    result = scene.send(other)
    assert result.code == 1 and result.out == "", result  # the slice is not what the manifest says: nobody takes it
    scene.node.has_run_nothing()


def test_a_signature_by_a_stranger_lets_nothing_run(t):
    scene = Scene(t, author=False)
    scene.refuses(signed(t, "hello.c", scene.author), "has no signature of a key in the keyring")


def test_a_signature_by_a_key_that_may_not_run_code_lets_nothing_run(t):
    scene = Scene(t, "run=none")
    key = re.escape(scene.author.public_key())
    scene.refuses(signed(t, "hello.c", scene.author), rf"signature by {key}: keyring, line 2 \(author\): run=none")


@pytest.mark.parametrize("field, words", [(f"revoked={PAST}", "was revoked"), (f"until={PAST}", "expired")],
                         ids=["revoked", "expired"])
def test_a_signature_by_a_key_that_is_not_in_force_lets_nothing_run(t, field, words):
    scene = Scene(t, field)
    scene.refuses(signed(t, "hello.c", scene.author), rf"keyring, line 2 \(author\): the key {words} at 2020-01-01")


def test_a_peer_that_may_run_nothing_cannot_bring_what_others_signed(t):
    scene = Scene(t, peer_fields=("run=none",))
    result = scene.send(signed(t, "hello.c", scene.author))
    attack.says_one_line(result, r"peer \(keyring, line 1\) may run nothing here: run=none")
    scene.node.has_run_nothing()


def test_of_several_signatures_one_that_holds_is_enough(t):
    scene, stranger = Scene(t), t.home("stranger")
    ifunc = signed(t, "hello.c", stranger)
    assert scene.author.run("sign", ifunc, "--key", "default").code == 0
    scene.runs(ifunc)


def test_code_that_runs_for_one_peer_does_not_run_for_another(t):
    """The node has the code already, from a process with its own key, unsigned."""
    scene = Scene(t)
    ifunc = t.build("hello.c")
    assert attack.call(t, t.own_home, ifunc, scene.node).out == "hello, you"
    before = scene.node.stat("executed")
    attack.says_one_line(scene.send(ifunc), "has no signature of a key in the keyring")
    assert scene.node.stat("executed") == before


def test_a_library_needs_what_its_author_may_do(t):
    """`libs` of the author's line counts, though the node and the sender's line allow the library."""
    scene = Scene(t, "libs=none", settings=["allow-lib=libm.so.6"])
    source = t.write("root.c", "#include <math.h>\n#include <threechains/ifunc.h>\n#pragma comment(lib, \"m\")\n"
                     "void root_main(void *p, size_t n, void *a) { (void)a; double r = cbrt((double)n + *(char *)p);"
                     " tc_reply(&r, sizeof r); }\n")
    ifunc = t.build(source)
    assert scene.author.run("sign", ifunc, "--key", "default").code == 0
    scene.refuses(ifunc, r"keyring, line 2 \(author\): libs=none does not allow the library 'libm\.so\.6'")


def test_revoking_an_author_drops_the_code_that_only_they_signed(t):
    scene = Scene(t, settings=["log=info"])
    node = t.serve("--listen", "127.0.0.1:0", "--stats")
    ifunc = signed(t, "hello.c", scene.author)
    client = attack.Client(t, {**TCP, **scene.peer.env})
    client.must(f"register {ifunc}")
    client.must(f"connect {node.address}")
    assert client.ask("call 20000 you") == "ok hello, you"
    assert t.own_home.run("key", "revoke", "author").code == 0
    node.signal(signal.SIGHUP)
    kit.run_until(lambda: not client.ask("call 20000 you").startswith("ok"), "the code is gone")
    answer = client.ask("call 20000 you")
    assert re.search(r"keyring, line 2 \(author\): the key was revoked", answer), answer
    assert node.running()


def test_verify_takes_no_forgery(t):
    author, reader = t.home("author"), t.home("reader")
    reader.trust("author", author)
    ifunc = signed(t, "hello.c", author)
    code, signature = parts(ifunc)
    _, other = parts(signed(t, "echo.c", author))
    assert reader.run("verify", ifunc).code == 0
    assert reader.run("verify", ifunc, "--key", "author").code == 0
    for name, content in [("stripped", code), ("other", code + other), ("cut", code + signature[:-1]),
                          ("longer", code + signature + b"x")]:
        for key in [(), ("--key", "author")]:
            result = reader.run("verify", t.write(f"{name}.ifunc", content), *key)
            assert result.code != 0 and len(result.err.splitlines()) == 1, (name, result)
    reader.write_lines(*[line + f" revoked={PAST}" for line in reader.lines()])
    assert reader.run("verify", ifunc).code != 0
