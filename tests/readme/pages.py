# SPDX-License-Identifier: Apache-2.0
"""The commands of a Markdown page, in its order.

A block that begins with ```sh holds commands. In one that begins with ```console, commands stand behind `$ ` and what
they print stands below them; one that shows `ifunc …: … failed` (or `denied`, or `revoked`) must fail, all others must not. A command behind `HOST$ ` is
typed on that host: the test makes a network namespace of each. Comments that no reader sees say how a block is tested. They
stand above it:

    <!-- not tested: REASON -->         the block is left out
    <!-- tested where: COMMAND -->      the block is left out, and the test skipped, where COMMAND fails
    <!-- output varies: REASON -->      what the block shows is an example
    <!-- test first: COMMAND -->        what the reader has done by then, such as building an ifunc of another page
"""

import re
import subprocess

RUN = {"sh", "console"}
NOTES = ("not tested", "tested where", "output varies", "test first")
PROMPT = re.compile(r"(\w*)\$ ")
# What a command of this project begins with; such a line must be in a block that is run.
COMMAND = re.compile(r"(\w+\$ +|\$ +)?([A-Z_]+=\S+ +)*"
                     r"(ifunc|make|cmake|ctest|ninja|mpirun|pip|python3?|scripts/\w+|\.\.?/[\w./-]+|build/\w+/\S+) ")


class Command:
    def __init__(self, line, text, shown, host=""):
        self.line, self.text, self.host = line, text, host  # host: its name; none for the reader's own
        self.shown = shown  # the lines that it prints, or None
        self.fails = any(re.match(r"ifunc( \w+)?: .*\b(failed|denied|revoked)\b", row) for row in shown or ())


class Block:
    def __init__(self, line, language, rows, notes):
        self.line, self.language, self.rows, self.notes = line, language, rows, notes

    def commands(self):
        """Raises ValueError when they cannot be told from what they print."""
        found, rows = [], list(enumerate(self.rows, self.line + 1))
        while rows:
            (line, text), host = rows.pop(0), ""
            if self.language == "console":
                prompt = PROMPT.match(text)
                if not prompt:
                    raise ValueError(f"line {line}: what is printed has no command above it")
                text, host = text[prompt.end():], prompt[1]
            elif not text.strip() or text.lstrip().startswith("#"):
                continue
            while rows and not is_whole(text):
                text += "\n" + rows.pop(0)[1]
            shown = []
            while self.language == "console" and rows and not PROMPT.match(rows[0][1]):
                shown.append(rows.pop(0)[1])
            found.append(Command(line, text, None if "output varies" in self.notes else shown or None, host))
        return found


def is_whole(text):
    """Whether the shell would run this, and not wait for another line."""
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    return done.returncode == 0 and not done.stderr and not re.search(r"(^|[^\\])\\$", text)


def blocks(text):
    """All code blocks. Raises ValueError with the line of what hides commands from the test."""
    found, notes, rows = [], {}, text.split("\n")
    at, in_list = 0, False
    while at < len(rows):
        row, line = rows[at], at + 1
        at += 1
        if row.startswith("<!--"):
            while "-->" not in row and at < len(rows):
                row += "\n" + rows[at].strip()
                at += 1
            note = re.match(r"<!-- (\w+ \w+): (.*?)\s*-->", row, re.S)
            if note and note[1] in NOTES:
                notes.setdefault(note[1], note[2])
            elif re.match("<!-- *(not +)?test|<!-- *output", row):
                raise ValueError(f"line {line}: the test does not know this comment")
        elif row.lstrip().startswith("```"):
            end = next((i for i in range(at, len(rows)) if rows[i].strip() == "```"), None)
            if end is None:
                raise ValueError(f"line {line}: the block has no end")
            found.append(Block(line, row.strip()[3:], rows[at:end], notes))
            at, notes = end + 1, {}
        elif row.strip():
            in_list = bool(re.match(r" *([-*]|\d+\.) ", row)) or (in_list and row.startswith(" "))
            if row.startswith("    ") and not in_list and rows[line - 2] == "":
                raise ValueError(f"line {line}: an indented block has no language; write ```sh, ```console or ```text")
            if notes:
                raise ValueError(f"line {line}: a comment for the test stands above something that is no block")
    return found


def check(text):
    """Raises ValueError when a command could stand in this page without being run."""
    for block in blocks(text):
        if block.language == "":
            raise ValueError(f"line {block.line}: a block has no language; write ```sh, ```console or ```text")
        if block.language in RUN:
            if "not tested" not in block.notes:
                block.commands()
            continue
        for line, row in enumerate(block.rows, block.line + 1):
            synopsis = re.search(r"\[-|\[[A-Z]", row)
            if block.language in ("text", "bash", "shell") and COMMAND.match(row) and not synopsis:
                raise ValueError(f"line {line}: a command stands in a block that is not run; write ```sh or ```console")
