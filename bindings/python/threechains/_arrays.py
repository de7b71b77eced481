# SPDX-License-Identifier: Apache-2.0
"""Arguments that are arrays. None is converted so that a value is lost: what does not fit is refused, as for numbers.

Types decide as NumPy's "same_kind" does, so that float64 goes to float32. Whole numbers are looked at one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from threechains import _native


def array_of(ifunc: str, name: str, dtype: Any, value: Any) -> Any:
    """The argument `name` of an ifunc as an array of `dtype` in one piece: `value` itself where it is one."""
    if type(value) is np.ndarray and value.dtype == dtype:
        return np.ascontiguousarray(value)
    return np.ascontiguousarray(_converted(f"{ifunc}: '{name}'", dtype, value))


def _converted(label: str, dtype: Any, value: Any) -> Any:
    if isinstance(value, _native.Message):
        raise TypeError(f"{label} is an array of {dtype}, and a Message for ifunc '{value.ifunc}' was given")
    if dtype.kind == "V":
        return _structured(label, dtype, value)
    given = np.asarray(value)
    if given.dtype.kind == "O" and given is not value and all(type(item) is int for item in given.flat):
        _check_range(label, dtype, given)  # whole numbers that no type of NumPy's holds
    if given.dtype.kind not in "biufc":
        raise _refused(TypeError, label, dtype, given, 0)
    if given.dtype.kind in "iu" and dtype.kind in "iub":
        _check_range(label, dtype, given)
    elif given.size and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise _refused(TypeError, label, dtype, given, 0)
    with np.errstate(over="ignore"):
        made = given.astype(dtype, copy=False)
    if dtype.kind in "fc" and not np.can_cast(given.dtype, dtype, "safe"):
        lost = np.isfinite(given) & ~np.isfinite(made)
        if lost.any():
            raise _refused(OverflowError, label, dtype, given, int(np.argmax(lost)))
    return made


def _check_range(label: str, dtype: Any, given: Any) -> None:
    low, high = (0, 1) if dtype.kind == "b" else (-np.inf, np.inf)
    if dtype.kind in "iu":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if given.size and (int(given.min()) < low or int(given.max()) > high):
        place = next(i for i, item in enumerate(given.flat) if not low <= int(item) <= high)
        raise _refused(OverflowError, label, dtype, given, place)


def _structured(label: str, dtype: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if not np.can_cast(value.dtype, dtype, "safe"):
            raise _refused(TypeError, label, dtype, value, 0)
        return value.astype(dtype, copy=False)
    rows = list(value)
    made = np.empty(len(rows), dtype)
    for i, name in enumerate(dtype.names):
        field = dtype[name]
        column = [row[i] for row in rows]
        made[name] = _converted(f"{label}, field '{name}'", field.base, column).reshape(len(rows), *field.shape) \
            if rows else []
    return made


def _refused(kind: type[Exception], label: str, dtype: Any, given: Any, place: int) -> Exception:
    value = given.flat[place] if given.size else given
    return kind(f"{label} is an array of {dtype}, which does not hold {str(value)[:80]} of {given.dtype} (element {place}); "
                "convert it by astype() where that is meant")
