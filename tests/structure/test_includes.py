# SPDX-License-Identifier: Apache-2.0
"""The folders below src/ are the architecture: each says in its CMakeLists.txt what it includes (tc_may_include), and
the code does so and nothing else. Tests, and what lies in a folder `testing`, may include more.
"""

import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src"
# Headers of libraries that only some folders may know, by the name that tc_may_include() takes.
LIBRARIES = {"ucx": r"(ucp|uct|ucs)/", "llvm": r"(llvm|llvm-c|clang|lld)/", "sodium": r"sodium\.h", "zstd": r"zstd",
             "pmix": r"pmix", "openssl": r"openssl/", "toml": r"toml\+\+/"}


def rules():
    """What each folder may include, by its name below src/."""
    found = {}
    for file in SOURCE.rglob("CMakeLists.txt"):
        for names in re.findall(r"^tc_may_include\(([^)]*)\)", file.read_text(), re.M):
            found[file.parent.relative_to(SOURCE).as_posix()] = set(names.split())
    return found


def room_of(path, allowed):
    """The folder with rules of its own that a file below src/ belongs to: node/bootstrap is part of node."""
    folder = path.parent
    while folder.as_posix() not in allowed and folder != folder.parent:
        folder = folder.parent
    return folder.as_posix()


def is_test(path):
    return "testing" in path.parts or path.name.endswith("_test.cc")


def includes(path):
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.M)


def arrows(allowed):
    """(file, folder, what it includes), across folders, as the code has it."""
    for path in sorted(SOURCE.rglob("*")):
        relative = path.relative_to(SOURCE)
        if path.suffix not in (".h", ".cc", ".c") or is_test(relative):
            continue
        room = room_of(relative, allowed)
        for name in includes(path):
            library = next((l for l, pattern in LIBRARIES.items() if re.match(pattern, name)), None)
            if library:
                yield relative, room, library
            elif (SOURCE / name).is_file():
                other = room_of(pathlib.PurePosixPath(name), allowed)
                if other != room:
                    yield relative, room, other


def circle(allowed):
    """Folders that lead back to the first one; nothing when there is none."""
    def walk(folder, path):
        if folder in path:
            return path[path.index(folder):] + [folder]
        return next((c for to in sorted(allowed.get(folder, ())) if (c := walk(to, path + [folder]))), None)
    return next((c for folder in sorted(allowed) if (c := walk(folder, []))), None)


def problems(allowed, found):
    found = list(found)
    for file, room, other in found:
        if room not in allowed:
            yield f"src/{file}: its folder says nowhere what it may include"
        elif other not in allowed[room]:
            yield f"src/{file} includes {other} when src/{room} may include {', '.join(sorted(allowed[room]))}"
    used = {(room, other) for _, room, other in found}
    for room, names in sorted(allowed.items()):
        for name in sorted(names):
            if (room, name) not in used:
                yield f"src/{room} may include {name} and does not"
    if around := circle(allowed):
        yield "folders include each other in a circle: " + " -> ".join(around)


def test_that_the_check_itself_finds_what_is_wrong():
    allowed = {"low": set(), "high": {"low"}}
    assert list(problems(allowed, [("high/a.cc", "high", "low")])) == []
    assert "low/b.cc includes high" in list(problems(allowed, [("low/b.cc", "low", "high"), ("a", "high", "low")]))[0]
    assert "and does not" in list(problems(allowed, []))[0]
    assert "circle: high -> low -> high" in list(problems({"low": {"high"}, "high": {"low"}}, []))[-1]


def test_folders_include_what_they_say_and_nothing_else():
    allowed = rules()
    wrong = list(problems(allowed, arrows(allowed)))
    assert not wrong, "\n".join(wrong)
