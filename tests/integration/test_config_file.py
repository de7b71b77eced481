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
