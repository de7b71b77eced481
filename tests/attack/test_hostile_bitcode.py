# SPDX-License-Identifier: Apache-2.0
"""Bitcode of a peer whose signed code may run in cells alone: what LLVM could be made to read, keep or believe on its way there."""

import os
import pathlib
import time

import pytest

import attack
import kit

FIELDS = ["run=signed", "in=cell", "read=none", "libs=none"]
MAIN = "void {name}_main(void *payload, size_t size, void *args) {{ (void)payload, (void)size, (void)args; {body} }}"


class Scene:
    """A node in which that peer's code runs in cells, and its own user's in the process."""

    def __init__(self, t, *fields):
        self.t, self.peer = t, attack.acquainted(t, "peer", t.own_home)
        t.own_home.trust("peer", self.peer, *(fields or FIELDS))
        self.node = attack.ProgramNode(t, "127.0.0.1:0", "isolate=untrusted")

    def build(self, name, body, *declarations):
        """Bitcode alone, with assembly, signed by the peer."""
        text = "\n".join(["#include <threechains/ifunc.h>", *declarations, MAIN.format(name=name, body=body)])
        source = pathlib.Path(self.t.path(f"{name}.c"))
        source.write_text(text + "\n")
        ifunc = self.t.build(str(source), "--no-object", "--allow-asm", "--extern", "stolen", "--target", f"{os.uname().machine}-linux-gnu")
        done = self.peer.run("sign", ifunc, "--key", "default")
        assert done.code == 0, done
        return ifunc

    def send(self, ifunc):
        return attack.call(self.t, self.peer, ifunc, self.node)

    def still_serves(self):
        assert self.node.running(), f"the node ended: {self.node.err[-2000:]}"
        answer = self.send(self.build("fine", 'tc_reply("fine", 4);'))
        assert (answer.code, answer.out) == (0, "fine"), answer


def at_file_scope(directive):
    return "tc_reply(stolen, 64);", [f'__asm__(".pushsection .rodata\\n.globl stolen\\nstolen:\\n{directive}\\n.zero 64\\n.popsection");',
                                     'extern const char stolen[] __attribute__((visibility("hidden")));']


def in_line(directive):
    return (f'const char *stolen; __asm__ volatile("jmp 2f\\n1: {directive}\\n.zero 64\\n2: lea 1b(%%rip), %0" : "=r"(stolen)); '
            "tc_reply(stolen, 64);"), []


@pytest.mark.parametrize("scope", [at_file_scope, in_line])
@pytest.mark.parametrize("how", ["incbin", "include", "macro", "again"])
def test_assembly_reads_no_file_of_the_node(t, scope, how):
    scene = Scene(t)
    secret = scene.t.write("secret", b"# the secret of the node\n")
    directive = {"incbin": f'.incbin \\"{secret}\\"', "include": f'.include \\"{secret}\\"',
                 "macro": f'.macro any a b\\n.\\\\a\\\\()\\\\b \\"{secret}\\"\\n.endm\\nany inc bin',
                 "again": ".rept 30000000\\n.byte 0\\n.endr"}[how]
    body, declarations = scope(directive)
    ifunc = scene.build("reads", body, *declarations)
    started = time.monotonic()
    result = scene.send(ifunc)
    assert time.monotonic() - started < 10 * attack.AT_ONCE
    assert result.code != 0 and "holds" in result.err and "assembly" in result.err, result
    assert "secret of the node" not in result.out + result.err, result
    scene.still_serves()


def test_a_frame_table_of_the_peers_own_is_refused_by_its_toolchain_and_by_the_node(t):
    scene = Scene(t)
    source = pathlib.Path(t.path("claims.c"))
    source.write_text('#include <threechains/ifunc.h>\n'
                      '__attribute__((used, section(".eh_frame"))) const unsigned char table[44] = {12};\n'
                      + MAIN.format(name="claims", body="tc_reply(table, 1);") + "\n")
    refused = t.ifunc("build", str(source), "--no-object", "-o", t.path("claims.ifunc"))
    assert refused.code != 0 and ".eh_frame" in refused.err, refused
    scene.still_serves()


def test_code_for_cells_is_not_linked_in_the_node(t):
    scene = Scene(t)
    answer = scene.send(scene.build("where", 'tc_reply("here", 4);'))
    assert (answer.code, answer.out) == (0, "here"), answer
    assert scene.node.stat("cell-calls") == 1
    assert scene.node.stat("code-loads") == 1
    assert scene.node.stat("object-loads") + scene.node.stat("baseline-compiles") == 0
    assert kit.run_until(lambda: scene.node.stat("tuned") == 0, "nothing is tuned in the node")
