# SPDX-License-Identifier: Apache-2.0
"""The bytes of an .ifunc file, as far as Python reads them: docs/wire-format.md has the layout.

A function's signature is a slice of its bundle. It has the role *source*, which stays with the sender, and a triple that
no machine has. So every reader of bundles takes it, the content id covers it, and it costs calls nothing.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from threechains._errors import Error, Status

_SIGNATURE = b"python-signature"  # the triple of its slice
_SOURCE, _BITCODE = 1, 1
_MOST_SLICES = 64
# Stops a file from costing its reader much memory.
_SIGNATURE_BYTES = 1 << 20


def manifest_of(bundle: bytes) -> bytes:
    """What a bundle begins with. The library checks the rest when it is registered."""
    size = int.from_bytes(bundle[4:8], "little")
    if bundle[:4] != b"TCB1" or size < 8 or len(bundle) < 8 + size:
        raise Error(Status.MALFORMED, f"{len(bundle)} bytes that begin with {bundle[:8]!r} are no .ifunc file")
    return bundle[8 : 8 + size]


@dataclass(frozen=True)
class _Slice:
    triple: bytes
    role: int
    packing: int
    size: int  # as it is stored
    digest: bytes


class _Reader:
    def __init__(self, content: bytes, place: int) -> None:
        self.content, self.place = content, place

    def number(self, size: int) -> int:
        return int.from_bytes(self.bytes(size), "little")

    def bytes(self, size: int) -> bytes:
        found = self.content[self.place : self.place + size]
        if len(found) != size:
            raise Error(Status.MALFORMED, f"the manifest of the .ifunc file ends after {len(self.content)} bytes, within a field")
        self.place += size
        return found


def _slices(manifest: bytes) -> tuple[int, list[_Slice], int]:
    """Where the slices' number stands, the slices, and where their entries end."""
    reader = _Reader(manifest, 4)
    for _ in range(2):  # name and tool
        reader.bytes(reader.number(1))
    for _ in range(reader.number(1)):  # dependencies
        reader.bytes(reader.number(1))
    for _ in range(reader.number(2)):  # imports
        reader.bytes(reader.number(2))
    counted = reader.place
    slices = []
    for _ in range(reader.number(1)):
        role, _, packing = reader.bytes(3)
        triple = reader.bytes(reader.number(1))
        reader.bytes(reader.number(1))  # the CPU
        stored = reader.number(4)
        reader.number(4)
        slices.append(_Slice(triple, role, packing, stored, reader.bytes(32)))
    return counted, slices, reader.place


def with_signature(bundle: bytes, text: bytes) -> bytes:
    """The same code with this signature. Bundles that have signatures of keys are not changed any more."""
    manifest = manifest_of(bundle)
    counted, slices, end = _slices(manifest)
    if len(slices) >= _MOST_SLICES or len(text) > _SIGNATURE_BYTES:
        raise Error(Status.TOO_LARGE, f"a bundle of {len(slices)} slices has no room for a signature of {len(text)} bytes: at most "
                    f"{_MOST_SLICES} slices, and {_SIGNATURE_BYTES} bytes")
    entry = bytes([_SOURCE, _BITCODE, 0, len(_SIGNATURE)]) + _SIGNATURE + b"\0" + \
        struct.pack("<II", len(text), len(text)) + hashlib.sha256(text).digest()
    made = manifest[:counted] + bytes([len(slices) + 1]) + manifest[counted + 1 : end] + entry + manifest[end:]
    return bundle[:4] + len(made).to_bytes(4, "little") + made + bundle[8 + len(manifest) :] + text


def signature_in(bundle: bytes) -> bytes | None:
    """The signature that the bundle holds; None: it has none."""
    manifest = manifest_of(bundle)
    place = 8 + len(manifest)
    for item in _slices(manifest)[1]:
        if item.role == _SOURCE and item.triple == _SIGNATURE and not item.packing and item.size <= _SIGNATURE_BYTES:
            text = bundle[place : place + item.size]
            if hashlib.sha256(text).digest() != item.digest:
                raise Error(Status.MALFORMED, f"the signature of the .ifunc file, {len(text)} bytes, does not match its hash")
            return text
        place += item.size
    return None
