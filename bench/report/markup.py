# SPDX-License-Identifier: Apache-2.0
"""Small pieces of HTML. Everything that comes from a file is escaped here."""

import html
import re

_QUARTILES = re.compile(r"^(.+?) (\[.+\])$")


def text(value):
    return html.escape(str(value), quote=False)


def code(value):
    return f"<code>{text(value)}</code>"


def paragraph(inner, kind=""):
    return f'<p class="{kind}">{inner}</p>' if kind else f"<p>{inner}</p>"


def cell(value):
    """Quartiles go to a line of their own."""
    parts = _QUARTILES.match(value)
    if parts is None:
        return text(value)
    return f'{text(parts[1])} <span class="quartiles">{text(parts[2])}</span>'


def table(head, rows, caption="", kind="", row_kinds=()):
    """`rows` of text; `row_kinds` gives single rows a class."""
    kinds = dict(row_kinds)
    lines = [f'<div class="box"><table class="{kind}">' if kind else '<div class="box"><table>']
    if caption:
        lines.append(f"<caption>{text(caption)}</caption>")
    lines.append("<thead><tr>" + "".join(f"<th>{text(h)}</th>" for h in head) + "</tr></thead><tbody>")
    for index, row in enumerate(rows):
        opening = f'<tr class="{kinds[index]}">' if index in kinds else "<tr>"
        lines.append(opening + "".join(f"<td>{cell(c)}</td>" for c in row) + "</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def made_by(sources):
    commands = list(dict.fromkeys(s.command for s in sources))
    return "Made by " + ", ".join(code(c) for c in commands) + "." if commands else ""


def figure(drawn, label, caption):
    return (f'<figure id="{text(drawn.key)}"><img src="{html.escape(drawn.file)}" alt="{html.escape(drawn.title)}">'
            f"<figcaption><b>{text(label)}</b> {caption}<br>{made_by(drawn.sources)}</figcaption></figure>")


def absent(label, why):
    return f'<div class="absent"><b>{text(label)}</b> {why}</div>'
