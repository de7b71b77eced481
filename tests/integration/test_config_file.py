# SPDX-License-Identifier: Apache-2.0
"""Configuration files of `ifunc serve` and `ifunc cluster`."""

import pytest

def test_a_node_is_configured_by_a_file_in_toml_and_the_command_line_counts_more(t):
    config = t.write("node.toml", 'name = "from the file"\nlisten = "none"\ntrust-network = ["127.0.0.0/8"]\n'
                                  'tune = false\nscratch = ["counter=4K"]\nstats = true\n')
    node = t.serve("--config", config, "--listen", "127.0.0.1:0")
    assert node.address.startswith("127.0.0.1:")
    node.stop()
    assert "stat executed 0" in node.out, node.out


@pytest.mark.parametrize("command", [["serve"], ["cluster", "1"]], ids=["serve", "cluster"])
def test_every_fault_of_a_configuration_file_is_said_at_once(t, command):
    config = t.write("node.toml", 'listen = 127.0.0.1:0\nhops = 70000\nring-byte = 4096\ntune = "off"\n')
    result = t.ifunc(*command, "--config", config, *(["--", "true"] if command[0] == "cluster" else []))
    assert result.code == 78, result
    for words in ('line 1: strings stand in quotes: listen = "127.0.0.1:0"', "line 2: hops is '70000'",
                  "line 3: there is no option 'ring-byte'; did you mean 'ring-bytes'?",
                  'line 4: tune is "off" when it is true or false'):
        assert f"{config}, {words}" in result.err, result


def test_a_good_file_is_said_to_be_good_and_no_node_is_started(t):
    config = t.write("node.toml", 'listen = "127.0.0.1:0"\nthreads = 2\n')
    result = t.ifunc("serve", "--check-config", config)
    assert (result.code, result.out, result.err) == (0, f"{config}: good, 2 options\n", ""), result


FAULTS = [
    ('listen = "nonsense"\nhops = 70000\n', ["line 1: ", "line 2: hops is '70000'"]),
    ("tune = tru\n[limits]\n", ["line 1: tune is tru when it is true or false", "line 2: there is no option 'limits'"]),
    ("objects = false\nbitcode = false\n", ["leave no code that could run"]),
    ('trust-network = ["0.0.0.0/0"]\n', ["is every network there is"]),
    ('target-args-data = "graph"\n', ["no --data or --scratch has that name"]),
]


@pytest.mark.parametrize("text, said", FAULTS, ids=["values", "syntax", "contradiction", "unsafe", "nameless"])
@pytest.mark.parametrize("option", ["--config", "--check-config"])
def test_a_bad_file_is_exit_code_78_with_all_its_faults(t, option, text, said):
    config = t.write("node.toml", text)
    result = t.ifunc("serve", option, config)
    assert result.code == 78 and result.out == "" and config in result.err, result
    assert all(words in result.err for words in said), result


def test_a_file_that_is_not_there_is_exit_code_78_and_wrong_usage_is_2(t):
    assert t.ifunc("serve", "--check-config", t.path("nowhere.toml")).code == 78
    assert t.ifunc("serve", "--check-confi", t.path("nowhere.toml")).code == 2
    assert t.ifunc("serve", "--check-config", "a", "--config", "b").code == 2
