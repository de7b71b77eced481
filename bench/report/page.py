# SPDX-License-Identifier: Apache-2.0
"""The page: sections in the paper's order. Figures lie beside it; nothing else is loaded."""

import os

from . import bulk_section, conditions, figures, markup, paper, scale_section, tables, ucp_section
from .markup import absent, code, paragraph

SECTIONS = (("conditions", "Conditions"), ("breakdown", "Tables I–III"), ("rates", "Tables IV–VI"), ("bulk", "Large payloads"),
            ("depth", "Figures 5–8"), ("servers", "Figures 9–12"), ("ratios", "Ratios"),
            ("ucp", "2021 paper"), ("scale", "Scale on paper"))


def _table(table, width):
    kinds = {row: "group" for row in table.group_starts}
    made = paragraph(markup.made_by([table.source]), "note") if table.source else ""
    kind = "ours" if table.ours else ""
    return f'<div class="{width}">' + markup.table(table.head, table.rows, table.title, kind, kinds) + made + "</div>"


def _grid(ours, papers, our_width):
    return ('<div class="tables">' + "".join(_table(t, our_width) for t in ours) +
            "".join(_table(t, "third") for t in papers) + "</div>")


def _breakdown(results):
    ours = [tables.our_breakdown(r) for r in results.tsi]
    papers = [tables.paper_breakdown(p) for p in paper.PLATFORMS]
    missing = "" if ours else absent("Ours:", "not measured yet (no tsi file).")
    return ('<h2 id="breakdown">Tables I–III: what a call costs, by stage</h2>' +
            paragraph("Target-side increment with one byte of payload. JIT, in brackets, is paid once for a code and "
                      "not part of the total.") + missing + _grid(ours, papers, "half"))


def _rates(results):
    ours = [tables.our_rates(r) for r in results.tsi]
    papers = [tables.paper_rates(p) for p in paper.PLATFORMS]
    head, rows = tables.ratios_side_by_side(results)
    kinds = {i: "ours" for i, (_, our) in enumerate(rows) if our}
    return ('<h2 id="rates">Tables IV–VI: latency and message rate</h2>' +
            paragraph("Speedup is that of the cached bitcode in the row below: latency of the one over latency of the "
                      "other, less one; rates the other way round. Ours show quartiles; the last pair sends 64 calls "
                      "at a time.") + _grid(ours, papers, "all") + "<h3>The ratios, side by side</h3>" +
            markup.table(head, [r for r, _ in rows], row_kinds=kinds))


def _claim(number):
    f = paper.FIGURES[number]
    return (f'<span class="paper">The paper\'s Figure {number}: {markup.text(f.caption)}. '
            f"It states: {markup.text(f.claim)}</span>")


def _paper_figures(drawn, first, last):
    parts = []
    for number in range(first, last + 1):
        key = str(number)
        if key in drawn:
            parts.append(markup.figure(drawn[key], f"In the form of Figure {number}.",
                                       f"{markup.text(drawn[key].title)}.<br>{_claim(number)}"))
        else:
            parts.append(absent(f"Figure {number}: not measured yet.",
                                f"{conditions.remedy(number)}<br>{_claim(number)}"))
    return "".join(parts)


def _ours_only(drawn, prefix, caption):
    return "".join(markup.figure(d, "Ours only.", caption.format(markup.text(d.title)))
                   for key, d in drawn.items() if key.startswith(prefix))


def _depth(drawn):
    return ('<h2 id="depth">Figures 5–8: pointer chases over depth</h2>' +
            paragraph("The paper's figures are different clusters; ours are different numbers of servers on one "
                      "machine. It prints no values, so its statements stand below. Medians with quartile bars; both "
                      "axes are logarithmic.") + _paper_figures(drawn, 5, 8) + _ours_only(drawn, "depth-", "{}."))


def _servers(drawn):
    extra = _ours_only(drawn, "inflight-", "{}: chase rate over the number of chases in flight.")
    heading = "<h3>Several chases in flight</h3>" if extra else ""
    return ('<h2 id="servers">Figures 9–12: pointer chases over the number of servers</h2>' +
            _paper_figures(drawn, 9, 12) + heading + extra)


def _ratio_tables(results):
    parts = []
    for transport in ("tcp", "shm"):
        depth, head, rows = tables.ratio_points(results, transport)
        if rows:
            parts.append(markup.table(head, rows, f"Depth {depth}, {results.network(transport)}"))
    return "".join(parts)


def _ratios(results, drawn):
    found = "".join(markup.figure(d, "Derived.", markup.text(d.title) + ".")
                    for key, d in drawn.items() if key.startswith("ratio"))
    return ('<h2 id="ratios">ifunc against Active Message and GET</h2>' +
            paragraph("At S servers a chase by ifunc goes over the network in (S−1)/S of its steps, one way each; by "
                      "GET in every step, there and back. Were a GET two one-way trips, ifunc/GET could be 2·S/(S−1) "
                      "at most. The measured bound puts in the one-way and GET times of the same run.") +
            (_ratio_tables(results) + found if found else absent("Not measured yet.", "No sweep over servers.")))


def _julia_in_brief(results):
    """Over the servers of Figure 12, from two on: with one no chase leaves it."""
    julia = results.with_julia()
    for transport, depth, inflight in figures.server_settings(julia)[:1]:
        points = julia.select(transport=transport, depth=depth, inflight=inflight)
        values = [(p.julia_to_c(), p.servers) for p in points if p.servers > 1]
        (low, at_low), (high, at_high) = min(values), max(values)
        yield (f"Chases of depth {depth} over {results.network(transport)}: bitcode of Julia runs at "
               f"<b>{tables.times(low)}</b> ({at_low} servers) to <b>{tables.times(high)}</b> ({at_high}) times the "
               "rate of C's.")


def _in_brief(results):
    """What a reader in a hurry wants: the worst ratios of the chases, the tables' first ratio."""
    items = []
    for r in results.tsi:
        cached = r.json["cached"]
        items.append(f"A cached ifunc takes <b>{cached['latency_ratio_to_am']:.2f}</b> times the latency of an Active "
                     f"Message over {tables.SYSTEM[r.transport].removeprefix('Ours, ')}; the paper's systems: "
                     "0.98–1.03.")
    for transport in ("tcp", "shm"):
        depth = max((p.depth for p in results.select(transport=transport)), default=0)
        points = [p for p in results.select(transport=transport, depth=depth, inflight=1)
                  if "ifunc_bitcode" in p.modes and p.servers > 1]
        for baseline, name in (("am", "Active Messages"), ("get", "GET")):
            values = [(p.ratio("ifunc_bitcode", baseline), p.servers) for p in points if baseline in p.modes]
            if values:
                (low, at_low), (high, at_high) = min(values), max(values)
                items.append(f"Chases of depth {depth} over {results.network(transport)}: bitcode ifuncs run at "
                             f"<b>{tables.times(low)}</b> ({at_low} servers) to <b>{tables.times(high)}</b> ({at_high}) times the "
                             f"rate of {name}.")
    items += _julia_in_brief(results)
    return f"<ul>{''.join(f'<li>{i}</li>' for i in items)}</ul>" if items else ""


def _date(results):
    return max((r.json.get("machine", {}).get("date", "")[:10] for r in results.all()), default="")


def render(results, drawn, prediction, data=None):
    """The whole page as text."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.css"), encoding="utf-8") as file:
        css = file.read()
    links = "".join(f'<a href="#{key}">{name}</a>' for key, name in SECTIONS)
    date = f" Measured on {_date(results)}." if _date(results) else ""
    body = [
        "<h1>Three-Chains, measured</h1>",
        paragraph("The tables and figures of the main paper (“Three-Chains”, 2022), ours beside its published "
                  f"values.{date} Made by {code('ifunc bench report')} from the files listed below.", "lead"),
        _in_brief(results), f"<nav>{links}</nav>", conditions.render(results, drawn, data), _breakdown(results),
        _rates(results), bulk_section.render(results), _depth(drawn), _servers(drawn), _ratios(results, drawn), ucp_section.render(results, drawn),
        scale_section.render(results, prediction, drawn)]
    return ('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            "<title>Three-Chains, measured</title>\n"
            f"<style>\n{css}</style>\n</head>\n<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n")
