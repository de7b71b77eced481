# SPDX-License-Identifier: Apache-2.0
"""`ifunc serve`, `send` and `inspect`, as people and scripts use them."""

import json
import os
import pathlib
import re
import signal
import struct
import time

import pytest

import kit
from kit import SHM, UCX_TCP


def test_a_text_is_sent_and_the_reply_printed(t):
    hello = t.build("hello.c")
    node = t.serve(env=SHM)
    result = t.ifunc("send", hello, node.address, "--payload", "world", env=SHM)
    assert (result.code, result.out) == (0, "hello, world"), result


def test_payloads_come_from_text_file_stdin_and_hex(t):
    hello = t.build("hello.c")
    node = t.serve()
    file = t.write("payload", "file")
    for options, stdin, reply in [(["--payload-file", file], b"", "hello, file"), (["--stdin"], b"pipe", "hello, pipe"),
                                  (["--hex", "68 65 78"], b"", "hello, hex"), ([], b"", "hello, ")]:
        result = t.ifunc("send", hello, node.address, *options, stdin=stdin)
        assert (result.code, result.out) == (0, reply), result


def test_a_reply_is_printed_in_hexadecimal_when_asked(t):
    node = t.serve()
    result = t.ifunc("send", t.build("hello.c"), node.address, "--payload", "A", "--hex-out")
    assert (result.code, result.out) == (0, b"hello, A".hex() + "\n"), result


def test_every_transport_carries_a_call(t):
    hello = t.build("hello.c")
    for name in ["shm", "tcp", "ucx", "ucx-put"]:
        node = t.serve("--transport", name, env=UCX_TCP)
        result = t.ifunc("send", hello, node.address, "--payload", name, "--transport", name, "--repeat", "3", env=UCX_TCP)
        assert (result.code, result.out) == (0, f"hello, {name}" * 3), result


def test_nobody_at_the_target_is_a_clear_error_in_time(t):
    result = t.ifunc("send", t.build("hello.c"), "127.0.0.1:9", "--timeout", "2000")
    assert result.code == 1 and "127.0.0.1:9" in result.err and result.seconds < 10 * kit.slowness(), result


def test_send_waits_for_a_node_that_does_not_listen_yet(t):
    hello = t.build("hello.c")
    for address in [*kit.free_addresses(1), f"unix:{t.path('late.socket')}"]:
        sender = t.start(kit.IFUNC, "send", hello, address, "--payload", "late", "--timeout", "60000")
        time.sleep(0.5)
        assert sender.running(), sender.err
        t.serve("--listen", address)
        assert (sender.wait(), sender.out) == (0, "hello, late"), sender.err


def test_a_file_that_is_no_ifunc_is_refused_with_its_name(t):
    node = t.serve()
    junk = t.write("junk.ifunc", "this is not an ifunc")
    for result in [t.ifunc("send", junk, node.address), t.ifunc("inspect", junk)]:
        assert result.code == 1 and "junk.ifunc" in result.err, result


def test_wrong_usage_is_exit_code_2(t):
    for arguments in [["send"], ["serve", "--no-such-option"], ["send", "x.ifunc", "no-port"], ["nonsense"],
                      ["serve", "--no-bitcode", "--no-object"], ["serve", "--code-budget", "lots"]]:
        result = t.ifunc(*arguments)
        assert result.code == 2 and result.err, (arguments, result)


def test_help_and_version_are_there(t):
    assert t.ifunc("--version").out.startswith("ifunc 0.")
    for command in ["serve", "send", "cluster", "inspect", "build"]:
        result = t.ifunc(command, "--help")
        assert result.code == 0 and len(result.out) > 200, result
        assert command in t.ifunc("--help").out


def test_inspect_shows_name_and_slices(t):
    result = t.ifunc("inspect", t.build("hello.c"))
    assert result.code == 0 and "hello" in result.out and "x86_64" in result.out and "aarch64" in result.out, result


def test_serve_stops_cleanly_on_sigterm_and_sigint(t):
    for number in [signal.SIGTERM, signal.SIGINT]:
        node = t.serve()
        t.ifunc("send", t.build("hello.c"), node.address)
        node.signal(number)
        assert node.wait(5) == 0, node.err
        assert re.search(rf" warning: ifunc serve: stops, told by {number.name}\n", node.err), node.err


def test_a_node_that_stops_says_so_in_the_format_of_its_log(t):
    node = t.serve("--log-format", "json", "--name", "server")
    assert node.stop() == 0
    said = json.loads(node.err)
    assert (said["node"], said["level"], said["message"]) == ("server", "warning", "ifunc serve: stops, told by SIGTERM")
    node = t.serve("--log", "off")
    assert node.stop() == 0 and node.err == ""


def test_nodes_of_a_cluster_do_not_say_that_they_stop(t):
    assert t.ifunc("cluster", "2", "--", "true").err == ""


def test_a_log_that_goes_to_the_journal_has_priorities(t):
    script = 'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$@"'
    node = t.serve("--name", "server", prefix=["sh", "-c", script, "sh"])
    assert node.stop() == 0
    assert node.err == "<4>server warning: ifunc serve: stops, told by SIGTERM\n"
    node = t.serve("--name", "server", env={"JOURNAL_STREAM": "1:1"})
    assert node.stop() == 0
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d server warning: ", node.err), node.err


def test_an_idle_node_without_time_to_drain_stops_cleanly(t):
    node = t.serve("--drain", "0")
    assert node.stop() == 0, node.err


# It lasts until the test stores something in the data `go`.
WAITS = """
#include <threechains/ifunc.h>
void waits_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size, (void)target_args;
  volatile char *data = tc_data("go", NULL);
  data[1] = 1;
  while (!data[0]) continue;
  tc_reply("done", 4);
}
"""


def run_until_told(t, *options):
    """A node that runs an ifunc which does not end by itself, the client that called it, and the data that ends it."""
    data = t.write("go", bytes(2))
    node = t.serve("--data", f"go={data}", *options)
    client = t.start(kit.IFUNC, "send", t.build(t.write("waits.c", WAITS)), node.address, "--timeout", "300000")
    kit.run_until(lambda: pathlib.Path(data).read_bytes()[1], "the ifunc runs")
    return node, client, pathlib.Path(data)


def test_the_ifunc_that_runs_at_sigterm_may_end_and_its_answer_arrives(t):
    node, client, data = run_until_told(t)
    node.signal(signal.SIGTERM)
    kit.run_until(lambda: "stops when" in node.err, "it says what it waits for")
    assert "stops, told by SIGTERM; the running ifunc 'waits' may go on for 10000 ms (--drain)\n" in node.err
    assert "stops when the running ifunc 'waits' has ended, or after 10000 ms" in node.err
    with open(data, "r+b") as file:
        file.write(b"1")
    assert node.wait() == 0, node.err
    assert client.wait() == 0 and client.out == "done", (client.out, client.err)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_ifunc_that_does_not_end_delays_the_end_of_a_node_by_drain_and_no_longer(t, threads):
    node, client, _ = run_until_told(t, "--drain", "700", "--threads", threads)
    node.signal(signal.SIGTERM)
    assert node.wait() == 128 + signal.SIGTERM
    assert "the running ifunc 'waits' has not ended within 700 ms (--drain): the node stops without it" in node.err
    assert client.wait() != 0 and "is gone" in client.err, client.err


def test_an_ifunc_gets_no_time_with_drain_0(t):
    node, client, _ = run_until_told(t, "--drain", "0")
    node.signal(signal.SIGTERM)
    assert node.wait() == 128 + signal.SIGTERM
    assert "the running ifunc 'waits' has not ended within 0 ms (--drain): the node stops without it" in node.err
    assert client.wait() != 0 and "is gone" in client.err, client.err


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_second_signal_ends_a_node_at_once(t, threads):
    node, _, _ = run_until_told(t, "--drain", "600000", "--threads", threads)
    node.signal(signal.SIGTERM)
    kit.run_until(lambda: "--drain" in node.err, "it waits")
    node.signal(signal.SIGINT)
    assert node.wait() == 128 + signal.SIGINT
    assert "stops at once, told by a second signal, SIGINT (the running ifunc 'waits')\n" in node.err


def test_keys_are_read_anew_while_an_ifunc_runs(t):
    node, client, data = run_until_told(t)
    node.signal(signal.SIGHUP)
    kit.run_until(lambda: "which takes effect when the running ifunc 'waits' has ended" in node.err, "it says so at once")
    assert "ifunc serve: reads its keyring again (SIGHUP)" in node.err
    assert node.running() and client.running()
    with open(data, "r+b") as file:
        file.write(b"1")
    assert client.wait() == 0, client.err
    kit.run_until(lambda: "the keyring was read again: 0 keys; nothing changed" in node.err, "it has taken effect")
    assert node.stop() == 0, node.err


def test_a_reload_says_what_it_does_not_read(t):
    node = t.serve("--keyring", "none")
    node.signal(signal.SIGHUP)
    words = "has no keyring to read (SIGHUP); other options are read only when it starts"
    kit.run_until(lambda: words in node.err, "it says so")
    assert node.stop() == 0, node.err


def test_a_ready_file_holds_the_address(t):
    path = t.path("address")
    node = t.serve("--ready-file", path)
    kit.run_until(lambda: os.path.exists(path), "ready file")
    assert pathlib.Path(path).read_text() == node.address + "\n"


def test_counters_are_printed_at_the_end(t):
    hello = t.build("hello.c")
    node = t.serve("--stats")
    t.ifunc("send", hello, node.address, "--repeat", "5")
    assert node.stop() == 0
    assert node.stats["executed"] == 5 and node.stats["code-loads"] == 1 and node.stats["failures"] == 0, node.stats


def test_messages_without_reply_have_run_when_send_ends(t):
    counter = t.write("counter", bytes(8))
    node = t.serve("--data", f"counter={counter}")
    result = t.ifunc("send", t.build("count.c"), node.address, "--no-reply", "--repeat", "1000")
    assert (result.code, result.out) == (0, ""), result
    assert struct.unpack("<Q", pathlib.Path(counter).read_bytes()) == (1000,)


def test_named_data_is_the_file_and_changes_reach_it(t):
    counter = t.write("counter", struct.pack("<Q", 41))
    node = t.serve("--data", f"counter={counter}")
    result = t.ifunc("send", t.build("count.c"), node.address, "--hex-out")
    assert result.out == struct.pack("<Q", 42).hex() + "\n", result
    assert pathlib.Path(counter).read_bytes() == struct.pack("<Q", 42)


def test_data_can_be_the_target_args(t):
    counter = t.write("c", bytes(8))
    node = t.serve("--data", f"other={counter}", "--target-args-data", "other")
    assert t.ifunc("send", t.build("count.c"), node.address).code == 0
    assert pathlib.Path(counter).read_bytes() == struct.pack("<Q", 1)


def test_read_only_data_is_read_but_its_file_never_written(t):
    data = t.write("data", bytes(64))
    source = t.write("first.c", "#include <threechains/ifunc.h>\n"
                     "void first_main(void *p, size_t n, void *a) { (void)p; (void)n; (void)a;\n"
                     "  size_t size; unsigned char *d = tc_data(\"d\", &size); tc_reply(d, size); }\n")
    node = t.serve("--data", f"d={data}:ro")
    result = t.ifunc("send", t.build(source), node.address, "--hex-out")
    assert result.out == bytes(64).hex() + "\n", result
    assert any("data" in line and " r--s " in line for line in node.maps().splitlines())


@pytest.mark.parametrize("command", ["inspect", "verify", "send", "build"])
def test_an_empty_file_is_said_to_be_empty(t, command):
    file = t.write("nothing.c" if command == "build" else "nothing.ifunc", "")
    result = t.ifunc(command, file, *(["127.0.0.1:1"] if command == "send" else []))
    assert result.code == 1 and re.fullmatch(f"ifunc {command}: {file}: .*is empty\n", result.err), result


@pytest.mark.parametrize("words, says", [
    (["serve", "--lisen", "x"], "ifunc serve: there is no option '--lisen'; did you mean '--listen'?"),
    (["snd"], "ifunc: there is no command 'snd'; did you mean 'send'?"),
    (["key", "lst"], "ifunc key: there is no command 'lst'; did you mean 'list'?"),
    (["bench", "tsi", "--runns", "3"], "ifunc bench tsi: there is no option '--runns'; did you mean '--runs'?"),
    (["serve", "--objects=perhaps"], "ifunc: a switch was given a value that is neither true nor false")],
    ids=["option", "command", "command_of_a_command", "option_of_a_program", "switch"])
def test_a_misspelt_word_is_named_with_the_one_that_is_meant(t, words, says):
    result = t.ifunc(*words)
    assert (result.code, result.out) == (2, "") and result.err.startswith(says) and result.err.count("\n") == 1, result


def test_data_that_is_missing_or_empty_is_refused_at_the_start(t):
    for text in ["x=/no/such/file", f"x={t.write('empty', '')}", "nothing"]:
        result = t.ifunc("serve", "--data", text)
        assert result.code in (1, 2) and result.err, result


def test_a_port_in_use_is_an_error_that_names_it(t):
    node = t.serve()
    result = t.ifunc("serve", "--listen", node.address)
    assert result.code == 1 and node.address.split(":")[1] in result.err, result


def test_listening_beyond_this_host_is_allowed_and_what_lets_in_everybody_is_told(t):
    for options, words in [((), None), (("--trust", "any"), "trust is any: everybody"),
                           (("--trust-network", "10.0.0.0/8"), "trust-network 10.0.0.0/8: every process there")]:
        node = t.serve("--listen", "0.0.0.0:0", *options)
        assert (words in node.err) if words else node.err == "", node.err
    everybody = t.ifunc("serve", "--listen", "0.0.0.0:0", "--trust-network", "0.0.0.0/0", seconds=10)
    assert everybody.code == 2 and "--trust any" in everybody.err, everybody


@pytest.mark.release_only
@pytest.mark.measured
def test_an_idle_node_costs_no_cpu(t):
    node = t.serve()
    assert t.ifunc("send", t.build("hello.c"), node.address).code == 0

    def used_in_5_seconds():
        before = node.cpu_seconds()
        time.sleep(5)
        return node.cpu_seconds() - before

    # First it compiles in the background, for as long as the machine lets it. A node that polls never comes to rest.
    used = []
    kit.run_until(lambda: used.append(used_in_5_seconds()) or used[-1] <= 0.005 + 1 / os.sysconf("SC_CLK_TCK"),
                  "5 seconds in which it takes no more than 0.1 % and one clock tick", 30)
    print(f"CPU seconds in each 5 seconds: {used}")


@pytest.mark.release_only
@pytest.mark.measured
def test_a_node_without_bitcode_is_small_and_never_maps_llvm(t):
    node = t.serve("--no-bitcode", "--stats", env=SHM)
    result = t.ifunc("send", t.build("hello.c"), node.address, "--payload", "x", "--repeat", "100", env=SHM)
    assert result.code == 0, result
    assert "LLVM" not in node.maps() and "threechains_jit" not in node.maps()
    assert node.memory_kib() < 12 * 1024, f"{node.memory_kib()} KiB resident"
    assert node.stop() == 0


def test_a_node_without_objects_compiles_bitcode(t):
    node = t.serve("--no-object", "--stats")
    result = t.ifunc("send", t.build("hello.c"), node.address, "--payload", "x")
    assert (result.code, result.out) == (0, "hello, x"), result


def test_a_node_beside_a_foreign_llvm_says_so_and_lives(t):
    """As in a program that has loaded TensorFlow's LLVM for all to see: ours would take its functions and end the process."""
    foreign = t.path("libforeign.so")
    source = t.write("foreign.c", b"void _ZN4llvm2cl6Option11addArgumentEv(void) {}\n")
    assert t.run("cc", "-shared", "-fPIC", source, "-o", foreign).code == 0
    node = t.serve("--no-object", env={"LD_PRELOAD": foreign})
    hello = t.build("hello.c")
    for _ in range(2):
        result = t.ifunc("send", hello, node.address, "--payload", "x")
        assert result.code == 1 and f"{foreign} has an LLVM of its own" in result.err, result
    assert node.running()


def test_an_ifunc_without_a_form_that_the_node_runs_is_refused(t):
    node = t.serve("--no-bitcode", "--name", "tiny")
    result = t.ifunc("send", t.build("hello.c", "--no-object"), node.address)
    assert result.code == 1 and "hello" in result.err and "tiny" in result.err, result


def test_a_library_that_is_not_allowed_is_refused_naming_ifunc_node_and_cause(t):
    node = t.serve("--name", "strict")
    result = t.ifunc("send", t.build("needs_z.c"), node.address)
    assert result.code == 1 and all(word in result.err for word in ["needs_z", "strict", "libz.so.1", "allow"]), result


def test_an_allowed_library_is_used(t):
    node = t.serve("--allow-lib", "libz.so.1")
    result = t.ifunc("send", t.build("needs_z.c"), node.address)
    assert result.code == 0 and result.out.startswith("1."), result


def test_a_library_that_is_not_installed_is_named(t):
    t.write("lost.deps", "libtc_no_such_library.so.7\n")
    source = t.write("lost.c", "#include <threechains/ifunc.h>\nint nowhere(void);\n"
                     "void lost_main(void *p, size_t n, void *a) { (void)p; (void)n; (void)a; nowhere(); }\n")
    node = t.serve("--allow-lib", "*", "--name", "there")
    result = t.ifunc("send", t.build(source), node.address)
    assert result.code == 1, result
    assert all(word in result.err for word in ["lost", "there", "libtc_no_such_library.so.7"]), result
    assert node.running()


def test_a_missing_symbol_is_named_with_ifunc_and_node(t):
    node = t.serve("--name", "plain")
    for form in ["--no-bitcode", "--no-object"]:
        ifunc = t.build("needs_symbol.c", "--extern", "not_exported_anywhere", form)
        result = t.ifunc("send", ifunc, node.address)
        assert result.code == 1, result
        assert all(word in result.err for word in ["needs_symbol", "plain", "not_exported_anywhere"]), result


def test_an_ifunc_that_fails_gives_its_code_and_message(t):
    node = t.serve("--name", "astronomer")
    failing = t.build("failing.c")
    for options in [[], ["--no-reply"]]:
        result = t.ifunc("send", failing, node.address, *options)
        assert result.code == 1, result
        assert all(w in result.err for w in ["failing", "astronomer", "42", "the moon is in the wrong phase"]), result


def test_a_node_survives_peers_that_are_killed_in_the_middle(t):
    hello = t.build("hello.c")
    node = t.serve()
    for _ in range(5):
        sender = t.start(kit.IFUNC, "send", hello, node.address, "--repeat", "100000000")
        time.sleep(0.2)
        sender.kill()
    result = t.ifunc("send", hello, node.address, "--payload", "still there")
    assert (result.code, result.out) == (0, "hello, still there"), result
