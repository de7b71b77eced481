# SPDX-License-Identifier: Apache-2.0
"""The page's last section: the model's costs, its errors, and what it says about the paper's own systems."""

from model import paper_trend
from model.predict import median_and_worst

from . import paper, style
from .markup import absent, figure, paragraph, table
from .tables import digits

TITLE = '<h2 id="scale">Scale on paper</h2>'


def _costs(prediction):
    rows = [[style.MODES[m][0], "round trip" if m == "get" else "one way", digits(c.trip_us),
             "—" if m == "get" else digits(c.step_us), digits(c.wait_us)]
            for m, c in ((m, prediction.costs[m]) for m in prediction.modes)]
    return table(["Mode", "A trip is", "Trip, µs", "Local step, µs", "Wait for each process without a core, µs"], rows,
                 "Fitted costs")


def _errors(prediction):
    several = "several chases in flight (gaps from the tsi file, nothing fitted)"
    single = prediction.tested(True)
    lines = []
    for errors, what in ((single, "one chase in flight"),
                         ([e for e in single if e.depth == prediction.depth], f"of these, depth {prediction.depth}"),
                         (prediction.tested(False), several)):
        if errors:
            middle, worst = median_and_worst(errors)
            lines.append(f"<li>{what}: {len(errors)} points, median error {middle:.1%}, worst {worst.relative:+.1%} "
                         f"({style.MODES[worst.mode][0]}, {worst.servers} servers, depth {worst.depth}, "
                         f"{worst.inflight} in flight).</li>")
    return paragraph("Points that the costs were not fitted to:") + f"<ul>{''.join(lines)}</ul>"


def _points(prediction):
    chosen = [e for e in prediction.errors if e.depth == prediction.depth]
    rows = [[style.MODES[e.mode][0], str(e.servers), str(e.inflight), digits(e.measured), digits(e.predicted),
             f"{e.relative:+.1%}", "calibrated on" if e.calibrated else "tested"] for e in chosen]
    head = ["Mode", "Servers", "In flight", "Measured (/s)", "Predicted (/s)", "Error", ""]
    return ("<details><summary>Every point at depth "
            f"{prediction.depth}</summary>{table(head, rows)}</details>")


def _paper():
    trends = [paper_trend.trend(c) for c in paper.CHASE_CLAIMS]
    needed = [t.get_over_one_way for t in trends]
    rows = [[t.system, str(t.servers), f"{t.stated_gain:+.0%}", f"{t.least_gain:+.0%} to {t.most_gain:+.0%}",
             f"{t.needed_get_us:.2f} µs", f"{t.get_over_one_way:.2f}", f"{t.ifunc_over_am:.2f}"] for t in trends]
    head = ["System", "Servers", "Gain over GET, stated", "Gain by the model, GET of 1 to 2 messages",
            "GET that the statement needs", "in one-way messages", "ifunc / AM by Tables I-III"]
    return ("<h3>The paper's own systems</h3>" +
            paragraph("The model with the paper's one-way times (Tables I-III) gives its trend: GET flat, ifunc and "
                      "Active Message falling with the number of servers towards one message a step. It does not by "
                      "itself give +75 %, +30 % or +20 %: the paper publishes no GET time. Each stated gain lies "
                      "between what a GET as quick as one message and one of two messages would give; the GET that it "
                      f"needs takes {min(needed):.2f} to {max(needed):.2f} messages' time, so no one ratio explains all "
                      "three systems. Tables I-III make the cached ifunc 1-2 % faster than Active Messages on Thor and "
                      "3 % slower on Ookami; section V.D states 3-7 % slower for chases, which the one-way times alone "
                      "do not explain.") +
            table(head, rows))


def render(results, prediction, drawn):
    if prediction is None:
        return TITLE + absent("Not predicted.", "The files hold chases of fewer than three numbers of servers: nothing "
                              "would be left to check a prediction against.") + _paper()
    p = prediction
    fitted = " and ".join(str(s) for s in p.calibrated_on)
    what = paragraph(
        f"Calibrated on the measured chases with {fitted} servers ({results.network(p.transport)}), predicted for 1 "
        "to 1024. Solid: a core for each node. Dashed: all nodes on this machine's "
        f"{p.cores} cores, where each process without a core adds to each trip; beyond what was measured that is a "
        "trend, no promise. The formulae stand in bench/model/README.md.")
    return (TITLE + what + figure(drawn["scale"], "Prediction.", "Markers are measured points.") + _costs(p) +
            _errors(p) + _points(p) + _paper())
