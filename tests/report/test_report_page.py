# SPDX-License-Identifier: Apache-2.0
"""`ifunc bench report` as people run it: which files it writes, what the page says, how it refuses."""

import os
import re
import subprocess
import tempfile

import pytest

import kit
import samples


def report(*arguments, **environment):
    return subprocess.run([kit.IFUNC, "bench", "report", *arguments], env={**os.environ, **environment}, text=True,
                          capture_output=True, timeout=90, check=False)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The folder of a page with all samples."""
    output = tmp_path_factory.mktemp("report") / "page"
    made = report(samples.HERE, "-o", str(output))
    if "no Python with matplotlib" in made.stderr:
        pytest.skip("no Python with matplotlib (package python3-matplotlib)")
    assert made.returncode == 0, made.stderr
    return output


@pytest.fixture
def html(page):
    return (page / "index.html").read_text(encoding="utf-8")


def test_every_figure_that_the_page_shows_lies_beside_it_and_no_other(page, html):
    shown = set(re.findall(r'<img src="([^"]+)"', html))
    written = {name for name in os.listdir(page) if name.endswith(".png")}
    assert shown == written
    assert {f"figure-{n:02d}.png" for n in range(5, 13)} <= written
    assert {"scale.png", "depth-shm-4.png", "ratio-am-tcp-1.png", "ratio-get-tcp-1.png"} <= written
    for name in written:
        with open(os.path.join(page, name), "rb") as file:
            assert file.read(8) == b"\x89PNG\r\n\x1a\n", name


def test_no_figure_is_called_missing_when_all_are_there(html):
    assert "not measured yet" not in html and "no such sweep" not in html
    assert "Only the ifunc is in Julia here" in html


def test_the_page_says_in_brief_how_julia_stands_to_c(html):
    assert "bitcode of Julia runs at <b>0.97</b> (2 servers) to <b>0.97</b> (4) times the rate of C's" in html


def test_a_figure_that_is_missing_stands_with_the_command_that_measures_it(page):
    without = page.parent / "without-julia"
    made = report(os.path.join(samples.HERE, "dapc-tcp.json"), "-o", str(without))
    assert made.returncode == 0, made.stderr
    html = (without / "index.html").read_text(encoding="utf-8")
    for number, options in ((8, "--servers 2 --lang julia"), (11, "--depth 4096 --inflight 16"),
                            (12, "--depth 4096 --lang julia")):
        command = rf"<code>[^<]*ifunc bench dapc {options} --json</code>"
        assert re.search(rf"Figure {number}: not measured yet\.</b> The command that measures it: {command}", html)
        assert re.search(rf"<li>Figure {number}: no such sweep[^<]* {command}", html)
    assert "Figure 9: not measured yet." not in html
    assert "Only the ifunc is in Julia here" not in html and "bitcode of Julia" not in html


def test_each_file_says_by_which_command_it_was_made(html):
    for name in ("tsi-shm.json", "tsi-tcp.json", "dapc-tcp.json", "dapc-shm.json", "dapc-tcp-inflight.json",
                 "dapc-tcp-julia.json", "ucp-shm.json", "bulk-tcp.json"):
        assert f"<code>{samples.sample(name)['command']}</code>" in html


def test_the_page_says_where_it_was_measured(html):
    assert "A made-up CPU, 2 cores of a virtual machine, 8 GiB of memory" in html


def test_the_papers_values_stand_beside_ours(html):
    assert "Paper, Table VI: Thor Xeon" in html
    assert "7,302,000" in html
    assert "Ours, shared memory" in html


def test_figures_3_and_4_of_the_2021_paper_stand_with_what_it_says_of_its_own(html):
    for kind in ("latency", "rate"):
        assert f'<img src="ucp-{kind}-ucp-shm.png"' in html
    assert "crossing between 8 and 16 KB" in html
    assert "81 % lower at 1 B" in html
    size = samples.sample("ucp-shm.json")["sizes"][0]
    assert f"{size['latency_ratio_to_am']:.2f}" in html


def test_large_payloads_stand_beside_memcpy_a_raw_stream_and_active_messages(html):
    point = samples.sample("bulk-tcp.json")["points"][0]
    assert "<td>1 MiB</td>" in html
    assert f"{point['call_ratio_to_raw']:.2f} / {point['reply_ratio_to_raw']:.2f}" in html


def test_a_bulk_point_without_a_figure_fails_with_the_keys_path():
    changed = samples.sample("bulk-tcp.json")
    del changed["points"][0]["reply_ratio_to_am"]
    with tempfile.TemporaryDirectory() as directory:
        result = report(samples.write(directory, changed), "-o", os.path.join(directory, "page"))
    assert result.returncode == 1
    assert "points[0].reply_ratio_to_am is missing" in result.stderr


def test_a_benchmark_without_a_way_fails_with_the_keys_path():
    changed = samples.sample("ucp-shm.json")
    del changed["sizes"][1]["send_receive_rate_ratio_to_am"]
    with tempfile.TemporaryDirectory() as directory:
        result = report(samples.write(directory, changed), "-o", os.path.join(directory, "page"))
    assert result.returncode == 1
    assert "sizes[1].send_receive_rate_ratio_to_am is missing" in result.stderr


def test_the_page_loads_nothing_from_elsewhere(html):
    assert re.search(r'(?:src|href)="(?:https?:|//|/)', html) is None
    assert "<script" not in html


def test_text_from_a_file_is_escaped():
    json = samples.sample("tsi-shm.json")
    json["command"] = "ifunc <script>alert(1)</script>"
    with tempfile.TemporaryDirectory() as directory:
        made = report(samples.write(directory, json), "-o", directory)
        assert made.returncode == 0, made.stderr
        with open(os.path.join(directory, "index.html"), encoding="utf-8") as file:
            html = file.read()
        assert "&lt;script&gt;alert(1)" in html
        assert "<script>" not in html
        assert [n for n in os.listdir(directory) if n.endswith(".png")] == []  # no chases, no figures


def test_a_broken_file_fails_with_its_name_and_writes_nothing():
    with tempfile.TemporaryDirectory() as directory:
        path = samples.write(directory, "{}")
        output = os.path.join(directory, "page")
        made = report(path, "-o", output)
        assert made.returncode == 1
        assert f"ifunc bench report: {path}: bench is null" in made.stderr
        assert "Traceback" not in made.stderr
        assert not os.path.exists(output)


def test_a_file_that_is_not_there_fails_with_its_name(page):
    made = report("/nowhere.json", "-o", page)
    assert made.returncode == 1
    assert "/nowhere.json" in made.stderr


def test_without_matplotlib_the_message_names_the_package(page):
    made = report(samples.HERE, "-o", page, PYTHON="false")
    assert made.returncode == 1
    assert "python3-matplotlib" in made.stderr
    assert "tried false" in made.stderr
