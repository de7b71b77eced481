# SPDX-License-Identifier: Apache-2.0
"""python3 -m model RESULTS...: the costs, the predictions and their errors as text. Run in bench/."""

import argparse
import sys

from report import load, paper

from . import paper_trend, predict


def print_prediction(p):
    print(f"{p.transport}, depth {p.depth}, {p.cores} cores; calibrated on {p.calibrated_on} servers\n")
    print(f"{'us':<16}{'trip':>10}{'local step':>12}{'waiting':>10}")
    for mode in p.modes:
        c = p.costs[mode]
        print(f"{mode:<16}{c.trip_us:>10.3f}{c.step_us:>12.4f}{c.wait_us:>10.3f}")
    print(f"\n{'chases/s':<10}" + "".join(f"{m + ', here':>22}{'a core each':>14}" for m in p.modes))
    for i, servers in enumerate(p.servers):
        print(f"{servers:<10}" + "".join(f"{p.here[m][i]:>22.4g}{p.alone[m][i]:>14.4g}" for m in p.modes))
    print(f"\n{'mode':<16}{'servers':>8}{'depth':>8}{'in flight':>10}{'measured':>12}{'predicted':>12}{'error':>9}")
    for e in p.errors:
        note = "  calibrated on" if e.calibrated else ""
        print(f"{e.mode:<16}{e.servers:>8}{e.depth:>8}{e.inflight:>10}{e.measured:>12.4g}{e.predicted:>12.4g}"
              f"{e.relative:>+9.1%}{note}")
    for one, what in ((True, "one chase in flight"), (False, "several in flight")):
        summary = predict.median_and_worst(p.tested(one))
        if summary:
            middle, worst = summary
            print(f"{what}, points not calibrated on: median error {middle:.1%}, worst {worst.relative:+.1%} "
                  f"({worst.mode}, {worst.servers} servers, depth {worst.depth})")


def print_trends():
    print("\nThe paper's systems by its own one-way times:")
    for t in (paper_trend.trend(c) for c in paper.CHASE_CLAIMS):
        print(f"  {t.system}: stated {t.stated_gain:+.0%} over GET; between {t.least_gain:+.0%} and {t.most_gain:+.0%} "
              f"for a GET of one to two messages; needs {t.needed_get_us:.2f} us, {t.get_over_one_way:.2f} messages. "
              f"ifunc/AM {t.ifunc_over_am:.2f}")


def main():
    parser = argparse.ArgumentParser(prog="model", description="Predicts chase rates from measured JSON.")
    parser.add_argument("results", nargs="+", help="JSON files of `ifunc bench`, or folders of them")
    try:
        results = load.load(parser.parse_args().results)
    except (load.BadResult, OSError) as error:
        print(f"model: {error}", file=sys.stderr)
        return 1
    found = [p for p in (predict.predict_transport(results, t) for t in load.TRANSPORTS) if p]
    if not found:
        print("model: the files hold chases of fewer than three numbers of servers; nothing could be checked",
              file=sys.stderr)
        return 1
    for prediction in found:
        print_prediction(prediction)
    print_trends()
    return 0


if __name__ == "__main__":
    sys.exit(main())
