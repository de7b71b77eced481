# SPDX-License-Identifier: Apache-2.0
"""`ifunc bench report` runs this folder: python3 .../report RESULTS... -o DIRECTORY. It reads, draws and writes.
0 success, 1 a file that cannot be used, 2 wrong usage.
"""

import argparse
import os
import sys

if not __package__:  # run as a folder, not with -m: the model's package lies beside this one
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from model.predict import predict  # noqa: E402
from report import figures, load, page, ucp_section  # noqa: E402


def main(arguments):
    parser = argparse.ArgumentParser(prog="ifunc bench report",
                                     description="One HTML page and PNG figures from saved `ifunc bench --json`.")
    parser.add_argument("results", nargs="+", help="JSON files, or folders of them")
    parser.add_argument("-o", "--output", default="report", help="folder for the page and its figures")
    parser.add_argument("--data", help="where the page says the JSON lies (default: the files' names alone)")
    options = parser.parse_args(arguments)
    try:
        results = load.load(options.results)
        os.makedirs(options.output, exist_ok=True)
        prediction = predict(results)
        drawn = figures.draw_all(results, prediction, options.output)
        drawn |= {d.key: d for d in ucp_section.draw(results, options.output)}
        path = os.path.join(options.output, "index.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(page.render(results, drawn, prediction, options.data))
    except (load.BadResult, OSError) as error:
        print(f"ifunc bench report: {error}", file=sys.stderr)
        return 1
    print(f"{path}: {len(results.tsi)} tsi, {len(results.dapc)} dapc and {len(results.ucp)} ucp-ifunc files, "
          f"{len(drawn)} figures")
    return 0


sys.exit(main(sys.argv[1:]))
