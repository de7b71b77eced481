# SPDX-License-Identifier: Apache-2.0
"""What scripts/test knows of the tests that have run: cases as ctest and pytest tell of them, and their sum."""

import re
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field

import tasks

MOST_RETRIED = 10  # more failures than that are no chance
LONGEST = 10
TOLD_LINES = 15  # of what a failed test printed, at the end
REPORT = re.compile(r"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|: runtime error: ")


@dataclass
class Case:
    name: str  # of the step and the test
    status: str  # passed, failed or skipped
    why: str = ""  # it failed or was skipped
    output: str = ""
    seconds: float = 0.0
    key: str = ""  # by which its runner starts it alone
    skips: list = field(default_factory=list)  # reasons: a file of pytest's passes also when some of its cases were skipped

    def may_be_chance(self):
        """A sanitizer saw what it saw."""
        return bool(self.key) and not REPORT.search(self.output)


class Tally:
    def __init__(self, word=None, machines=()):
        self.word = word  # that the names of the tests must have; None: all are run
        self.passed, self.failed, self.skipped, self.flaky = 0, [], [], []
        self.times = []  # (seconds, test) of every test that has run
        self.machines, self.languages = set(machines), set()

    def take(self, other):
        """Adds what a step has found."""
        self.passed += other.passed
        for name in ["failed", "skipped", "flaky", "times"]:
            getattr(self, name).extend(getattr(other, name))
        self.machines |= other.machines
        self.languages |= other.languages

    def add(self, name, error):
        """One check that is not a test of ctest's or pytest's."""
        if error:
            tasks.say(f"FAILED {name}: {error}")
            self.failed.append((name, error))
        else:
            self.passed += 1

    def skip(self, name, reason):
        self.skipped.append((name, reason))

    def add_cases(self, cases, run_again):
        """`run_again(cases)` runs some once more, alone, and returns them anew."""
        failed = [case for case in cases if case.status == "failed"]
        retried = [case for case in failed if case.may_be_chance()] if len(failed) <= MOST_RETRIED else []
        second = {case.name: case for case in (run_again(retried) if retried else [])}
        for case in cases:
            self.times.append((case.seconds, case.name))
            language = re.search(r"test_ten_ifuncs_answer_as_in_c[/\[]\w+-(\w+)", case.name)
            if language and case.status == "passed":
                self.languages.add(language[1])
            if case.status == "passed":
                self.passed += 1
            if case.status == "skipped":
                self.skip(case.name, case.why)
            for reason in case.skips:
                self.skip(case.name, reason)
            if case.status == "failed":
                self.add_failed(case, second.get(case.name))

    def add_failed(self, case, second):
        first = f"{case.why}\n{tasks.tail(case.output, 60)}"
        if second is None or second.status != "passed":
            return self.add(case.name, first)
        tasks.say(f"FLAKY {case.name}: passed at the second try; the first one: {first}")
        self.flaky.append((case.name, first))
        self.passed += 1

    def tell(self):
        """What matters most comes last: a CI may show the end alone."""
        tasks.say(f"The {LONGEST} tests that took longest:")
        for spent, name in sorted(self.times, reverse=True)[:LONGEST]:
            tasks.say(f"  {spent:6.1f} s  {name}")
        reasons = {}
        for name, reason in self.skipped:
            reasons.setdefault(reason, []).append(name)
        for reason, names in reasons.items():
            tasks.say(f"skipped {len(names)}: {reason}: {', '.join(names)}")
        for name, first in self.flaky:
            tasks.say(f"flaky: {name}: passed at the second try; the first one: {tasks.tail(first, TOLD_LINES)}")
        for name, error in self.failed:
            tasks.say(f"failed: {name}: {tasks.tail(str(error), TOLD_LINES)}")
        covered = [f"{what}: {', '.join(sorted(names)) or 'none'}"
                   for what, names in [("machines", self.machines), ("languages", self.languages)]]
        tasks.say(f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped, "
                  f"{len(self.flaky)} flaky; {'; '.join(covered)}")


def skip_reasons(output):
    """The words given to GTEST_SKIP() or pytest.skip(), or a line that begins with SKIP:."""
    found = re.findall(r": Skipped\n(.*?)\n+\[  SKIPPED \]", output, re.S)
    found += re.findall(r"^SKIPPED \[\d+\] (?:\S+:\d+: )?(.*)$", output, re.M) + re.findall(r"^SKIP: ?(.*)$", output, re.M)
    return [" ".join(words.split()) for words in found]


def of_ctest(step, junit, log):
    """All cases of a run. `log`: what ctest printed, which alone says how they failed."""
    verdicts = dict(re.findall(r"Test +#\d+: (.+?) \.+(?:\*\*\*)? *(\S.*?) +[\d.]+ sec", log))
    cases = []
    for case in xml.parse(junit).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        skipped = case.find("skipped").get("message", "") if case.find("skipped") is not None else ""
        skips = []
        if case.get("status") == "run":
            status, why = "passed", ""
            skips = [] if "[  PASSED  ]" in output else skip_reasons(output)
        elif skipped.startswith("SKIP_"):
            status, why = "skipped", "; ".join(skip_reasons(output)) or "no reason given"
        elif case.get("status") == "disabled":
            status, why = "skipped", "disabled in its source"
        else:
            status, why = "failed", skipped or verdicts.get(case.get("name"), "failed")
        cases.append(Case(f"{step}: {case.get('name')}", status, why, output, float(case.get("time", 0)),
                          case.get("name"), skips))
    return cases


def of_pytest(step, junit, target):
    """All cases of a run on `target`: a file, a folder, or a case. Files are named from a folder above, which pytest chooses."""
    at = tasks.ROOT / str(target).split("::")[0]
    cases = []
    for case in xml.parse(junit).getroot().iter("testcase"):
        name = f"{step}: {case.get('classname', '').rsplit('.', 1)[-1]}.{case.get('name')}"
        file = next((folder / case.get("file") for folder in [at, *at.parents] if (folder / case.get("file", "?")).is_file()), None)
        key = f"{file}::{case.get('name')}" if file else ""
        bad, skipped = case.find("failure"), case.find("skipped")
        bad = case.find("error") if bad is None else bad
        status = "skipped" if skipped is not None else "passed" if bad is None else "failed"
        why = skipped.get("message", "") if skipped is not None else ""
        output = "" if bad is None else bad.text or bad.get("message", "")
        cases.append(Case(name, status, why, output, float(case.get("time", 0)), key))
    return cases
