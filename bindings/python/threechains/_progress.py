# SPDX-License-Identifier: Apache-2.0
"""How far a `Cluster.map` is, on a terminal."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")
# What takes no longer shows nothing, unless it is asked for.
_DELAY = 1.0
_BETWEEN = 0.1


def shown(items: Sequence[_T], name: str, wanted: bool | None) -> Iterator[_T]:
    """The items, while it is shown on standard error how many were taken. None: if that is a terminal."""
    if wanted is False or (wanted is None and not _is_terminal()):
        return iter(items)
    delay = 0.0 if wanted else _DELAY
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return _plain(items, name, delay)
    return iter(tqdm(items, desc=name, delay=delay))


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # pythonw has none


def _plain(items: Sequence[_T], name: str, delay: float) -> Iterator[_T]:
    begun = time.monotonic()
    told = begun + delay - _BETWEEN
    is_told = False
    for taken, item in enumerate(items):
        now = time.monotonic()
        if now - told >= _BETWEEN:
            told, is_told = now, True
            print(f"\r{name}: {taken} of {len(items)}, {now - begun:.0f} s", end="", file=sys.stderr, flush=True)
        yield item
    if is_told or delay == 0:
        print(f"\r{name}: {len(items)} of {len(items)}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
