# SPDX-License-Identifier: Apache-2.0
"""`ifunc bench report` as people run it: which files it writes, what the page says, how it refuses."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import samples

IFUNC = os.path.join(os.environ["TC_BUILD_DIR"], "bin", "ifunc")


def report(*arguments, **environment):
    return subprocess.run([IFUNC, "bench", "report", *arguments], env={**os.environ, **environment}, text=True,
                          capture_output=True, timeout=90, check=False)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.output = os.path.join(cls.directory.name, "page")
        cls.result = report(samples.HERE, "-o", cls.output)
        if "no Python with matplotlib" in cls.result.stderr:
            print("SKIP: no Python with matplotlib (package python3-matplotlib)")
            sys.exit(77)
        if cls.result.returncode == 0:
            with open(os.path.join(cls.output, "index.html"), encoding="utf-8") as file:
                cls.html = file.read()

    def setUp(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)

    def test_every_figure_that_the_page_shows_lies_beside_it_and_no_other(self):
        shown = set(re.findall(r'<img src="([^"]+)"', self.html))
        written = {name for name in os.listdir(self.output) if name.endswith(".png")}
        self.assertEqual(shown, written)
        self.assertLessEqual({f"figure-{n:02d}.png" for n in (5, 6, 7, 9, 10)}, written)
        self.assertLessEqual({"scale.png", "depth-shm-4.png", "ratio-am-tcp-1.png", "ratio-get-tcp-1.png"}, written)
        for name in written:
            with open(os.path.join(self.output, name), "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n", name)

    def test_julias_figures_are_not_measured_yet(self):
        for number in (8, 12):
            self.assertIn(f"Figure {number}: not measured yet.", self.html)
        self.assertNotIn("Figure 9: not measured yet.", self.html)

    def test_each_file_says_by_which_command_it_was_made(self):
        for name in ("tsi-shm.json", "tsi-tcp.json", "dapc-tcp.json", "dapc-shm.json", "dapc-tcp-inflight.json",
                     "ucp-shm.json", "bulk-tcp.json"):
            self.assertIn(f"<code>{samples.sample(name)['command']}</code>", self.html)

    def test_the_page_says_where_it_was_measured(self):
        self.assertIn("A made-up CPU, 2 cores of a virtual machine, 8 GiB of memory", self.html)

    def test_the_papers_values_stand_beside_ours(self):
        self.assertIn("Paper, Table VI: Thor Xeon", self.html)
        self.assertIn("7,302,000", self.html)
        self.assertIn("Ours, shared memory", self.html)

    def test_figures_3_and_4_of_the_2021_paper_stand_with_what_it_says_of_its_own(self):
        for kind in ("latency", "rate"):
            self.assertIn(f'<img src="ucp-{kind}-ucp-shm.png"', self.html)
        self.assertIn("crossing between 8 and 16 KB", self.html)
        self.assertIn("81 % lower at 1 B", self.html)
        size = samples.sample("ucp-shm.json")["sizes"][0]
        self.assertIn(f"{size['latency_ratio_to_am']:.2f}", self.html)

    def test_large_payloads_stand_beside_memcpy_a_raw_stream_and_active_messages(self):
        point = samples.sample("bulk-tcp.json")["points"][0]
        self.assertIn("<td>1 MiB</td>", self.html)
        self.assertIn(f"{point['call_ratio_to_raw']:.2f} / {point['reply_ratio_to_raw']:.2f}", self.html)

    def test_a_bulk_point_without_a_figure_fails_with_the_keys_path(self):
        changed = samples.sample("bulk-tcp.json")
        del changed["points"][0]["reply_ratio_to_am"]
        with tempfile.TemporaryDirectory() as directory:
            result = report(samples.write(directory, changed), "-o", os.path.join(directory, "page"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("points[0].reply_ratio_to_am is missing", result.stderr)

    def test_a_benchmark_without_a_way_fails_with_the_keys_path(self):
        changed = samples.sample("ucp-shm.json")
        del changed["sizes"][1]["send_receive_rate_ratio_to_am"]
        with tempfile.TemporaryDirectory() as directory:
            result = report(samples.write(directory, changed), "-o", os.path.join(directory, "page"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("sizes[1].send_receive_rate_ratio_to_am is missing", result.stderr)

    def test_the_page_loads_nothing_from_elsewhere(self):
        self.assertIsNone(re.search(r'(?:src|href)="(?:https?:|//|/)', self.html))
        self.assertNotIn("<script", self.html)

    def test_text_from_a_file_is_escaped(self):
        json = samples.sample("tsi-shm.json")
        json["command"] = "ifunc <script>alert(1)</script>"
        with tempfile.TemporaryDirectory() as directory:
            made = report(samples.write(directory, json), "-o", directory)
            self.assertEqual(made.returncode, 0, made.stderr)
            with open(os.path.join(directory, "index.html"), encoding="utf-8") as file:
                html = file.read()
            self.assertIn("&lt;script&gt;alert(1)", html)
            self.assertNotIn("<script>", html)
            self.assertEqual([n for n in os.listdir(directory) if n.endswith(".png")], [])  # no chases, no figures

    def test_a_broken_file_fails_with_its_name_and_writes_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            path = samples.write(directory, "{}")
            output = os.path.join(directory, "page")
            made = report(path, "-o", output)
            self.assertEqual(made.returncode, 1)
            self.assertIn(f"ifunc bench report: {path}: bench is null", made.stderr)
            self.assertNotIn("Traceback", made.stderr)
            self.assertFalse(os.path.exists(output))

    def test_a_file_that_is_not_there_fails_with_its_name(self):
        made = report("/nowhere.json", "-o", self.output)
        self.assertEqual(made.returncode, 1)
        self.assertIn("/nowhere.json", made.stderr)

    def test_without_matplotlib_the_message_names_the_package(self):
        made = report(samples.HERE, "-o", self.output, PYTHON="false")
        self.assertEqual(made.returncode, 1)
        self.assertIn("python3-matplotlib", made.stderr)
        self.assertIn("tried false", made.stderr)


if __name__ == "__main__":
    unittest.main()
