# SPDX-License-Identifier: Apache-2.0
"""The demos of the examples, each on a small part of its data."""

import pytest

import kit


def demo(t, example, size):
    result = t.run(str(kit.ROOT / "examples" / example / "demo.sh"), str(kit.BUILD), size, seconds=110)
    assert result.code == 0, result


def test_the_demo_of_sqlite_and_zstd_fills_the_database(t):
    demo(t, "03-sqlite-zstd", "300")


@pytest.mark.unfreed
def test_the_demo_of_the_graph_searches_both_graphs(t):
    demo(t, "06-graph", "10")
