# SPDX-License-Identifier: Apache-2.0
"""`ifunc serve --config FILE` reads its file again on SIGHUP."""

import pathlib
import signal

import kit

READ_AGAIN = "the options were read again; new: "


def serve(t, text, *options):
    file = pathlib.Path(t.write("node.toml", text))
    return t.serve("--config", str(file), *options), file


def hup(node, words):
    node.signal(signal.SIGHUP)
    kit.run_until(lambda: words in node.err, f"it says: {words}")


def test_the_level_of_the_log_changes_at_once(t):
    node, file = serve(t, 'log = "error"\n')
    file.write_text('log = "info"\n')
    node.signal(signal.SIGHUP)
    # The first level hides what is said of that; the next one does not.
    def says_it():
        node.signal(signal.SIGHUP)
        return READ_AGAIN + "none" in node.err

    kit.run_until(says_it, "it logs warnings")
    assert READ_AGAIN + "log" not in node.err
    assert node.stop() == 0


def test_the_time_to_drain_changes_and_other_options_are_named(t):
    node, file = serve(t, "drain = 600000\nthreads = 2\n")
    file.write_text("drain = 500\nthreads = 3\nhops = 7\n")
    hup(node, READ_AGAIN + "drain")
    assert "hops, threads changed, and take effect when the node starts again" in node.err
    file.write_text("drain = 500\nthreads = 2\nhops = 64\n")
    hup(node, READ_AGAIN + "none")
    assert node.err.count("when the node starts again") == 1, "they are as they were"
    assert node.stop() == 0


def test_a_file_with_faults_changes_nothing_and_all_of_them_are_logged(t):
    node, file = serve(t, "drain = 1000\n")
    file.write_text('drain = "soon"\nthreads = 0\nno-such-option = 1\nlog = "off"\n')
    hup(node, "the options stay as they were")
    kit.run_until(lambda: "no-such-option" in node.err, "all faults are said")
    for name in ("drain", "threads"):
        assert name in node.err.split("the options stay as they were")[1], node.err
    file.unlink()
    node.signal(signal.SIGHUP)
    kit.run_until(lambda: node.err.count("the options stay as they were") == 2, "a file that is gone changes nothing")
    file.write_text("drain = 1000\n")
    hup(node, READ_AGAIN + "none")
    assert node.stop() == 0


def test_the_command_line_counts_more_than_the_file(t):
    node, file = serve(t, "drain = 1000\n", "--drain", "2000")
    file.write_text("drain = 3000\n")
    hup(node, READ_AGAIN + "none")
    assert node.stop() == 0
