# SPDX-License-Identifier: Apache-2.0
"""Which chases each figure takes, and which lines it has."""

import os

import pytest

import samples

pytest.importorskip("matplotlib", reason="no matplotlib (package python3-matplotlib)")
from report import figures, load, style  # noqa: E402


class Drawing:
    """Figures drawn but not written: the lines of each, by its file's name."""

    def __init__(self, results, monkeypatch):
        self.lines = {}
        monkeypatch.setattr(style, "finish", self.finish)
        self.drawn = figures.draw_all(results, None, "")

    def finish(self, figure, axes, path):
        bars, labels = axes.get_legend_handles_labels()
        self.lines[os.path.basename(path)] = {label: dict(zip(*map(list, bar.lines[0].get_data())))
                                              for bar, label in zip(bars, labels) if hasattr(bar, "lines")}
        style.plt.close(figure)


@pytest.fixture
def drawing(monkeypatch):
    return Drawing(load.load([samples.HERE]), monkeypatch)


def results_of(directory, *files):
    return load.load([samples.write(directory, content, f"{number}.json") for number, content in enumerate(files)])


def changed(name, change):
    json = samples.sample(name)
    for point in json["points"]:
        change(point)
    return json


BESIDE_JULIA = ["GET", "Active Message", "ifunc, bitcode of C", "ifunc, bitcode of Julia"]


def test_figure_8_has_c_and_julia_beside_active_messages_and_get_over_depth(drawing):
    lines = drawing.lines["figure-08.png"]
    assert list(lines) == BESIDE_JULIA
    assert all(list(line) == [1, 64, 4096] for line in lines.values())
    assert drawing.drawn["8"].title.startswith("2 servers, TCP")


def test_figure_12_has_the_same_lines_over_servers(drawing):
    lines = drawing.lines["figure-12.png"]
    assert list(lines) == BESIDE_JULIA
    assert all(list(line) == [2, 4] for line in lines.values())
    assert drawing.drawn["12"].title.startswith("Depth 4096, TCP")


def test_c_beside_julia_is_of_the_same_run_although_a_longer_sweep_has_the_setting(drawing):
    own, longer = ({(p["servers"], p["depth"]): p["ifunc_bitcode"]["chases_per_s"]
                    for p in samples.sample(name)["points"]} for name in ("dapc-tcp-julia.json", "dapc-tcp.json"))
    assert drawing.lines["figure-08.png"]["ifunc, bitcode of C"][64] == own[2, 64]
    assert drawing.lines["figure-05.png"]["ifunc, bitcode"][64] == longer[2, 64] != own[2, 64]
    assert [s.name for s in drawing.drawn["8"].sources] == ["dapc-tcp-julia.json"]


def test_julia_over_tcp_stands_before_julia_over_shared_memory(tmp_path):
    tcp = samples.sample("dapc-tcp-julia.json")
    julia = results_of(tmp_path, {**tcp, "transport": "shm"}, tcp).with_julia()
    assert figures.depth_settings(julia) == [("tcp", 2), ("shm", 2)]
    assert figures.server_settings(julia) == [("tcp", 4096, 1), ("shm", 4096, 1)]


def test_a_sweep_with_julia_may_come_from_two_files(tmp_path):
    whole = samples.sample("dapc-tcp-julia.json")
    over_depth, over_servers = ({**whole, "points": points} for points in (whole["points"][:3], whole["points"][3:]))
    julia = results_of(tmp_path, over_depth, over_servers).with_julia()
    assert [p.servers for p in julia.select(transport="tcp", depth=4096, inflight=1)] == [2, 4]


def test_without_julia_there_is_neither_figure(tmp_path, monkeypatch):
    drawing = Drawing(results_of(tmp_path, samples.sample("dapc-tcp.json")), monkeypatch)
    assert {"5", "9"} <= set(drawing.drawn) and not {"8", "12"} & set(drawing.drawn)


def test_figure_11_is_the_sweep_over_servers_with_the_most_in_flight(drawing):
    assert figures.server_settings(load.load([samples.HERE])) == [("tcp", 4096, 1), ("shm", 4096, 1), ("tcp", 4096, 16)]
    assert drawing.drawn["11"].title.endswith("16 chases in flight")
    lines = drawing.lines["figure-11.png"]
    assert list(lines) == ["GET", "Active Message", "ifunc, bitcode", "ifunc, binary"]
    assert all(list(line) == [2, 4] for line in lines.values())


def test_a_sweep_in_flight_at_a_smaller_depth_is_not_figure_11(tmp_path):
    smaller = changed("dapc-tcp-inflight.json", lambda point: point.update(depth=1024))
    results = results_of(tmp_path, samples.sample("dapc-tcp.json"), smaller)
    assert figures.server_settings(results) == [("tcp", 4096, 1)]


def test_chases_in_flight_are_drawn_at_the_depth_that_has_most_of_them(tmp_path):
    smaller = changed("dapc-tcp-inflight.json", lambda point: point.update(depth=64, inflight=2 * point["inflight"]))
    results = results_of(tmp_path, samples.sample("dapc-tcp.json"), samples.sample("dapc-tcp-inflight.json"), smaller)
    assert figures.inflight_settings(results) == [("tcp", 2, 4096), ("tcp", 4, 4096)]
    fewer = samples.sample("dapc-tcp-inflight.json")
    del fewer["points"][0]
    results = results_of(tmp_path, fewer, smaller)
    assert figures.inflight_settings(results) == [("tcp", 4, 64)]
