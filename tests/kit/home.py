# SPDX-License-Identifier: Apache-2.0
"""Homes: the folders with keys, keyring and known nodes of a user, or of a test. docs/keys.md has their formats."""

import base64
import os
import pathlib
import re

from .build import IFUNC
from .process import run


class Home:
    """A home with a key of its own. Processes that share one know each other by it."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.keyring, self.known_nodes = self.path / "keyring", self.path / "known-nodes"
        self.new_key("default")

    @property
    def env(self):
        return {"THREECHAINS_HOME": str(self.path)}

    def key_file(self, name="default"):
        return self.path / "keys" / name

    def new_key(self, name):
        """As `ifunc key new` does, but at once: every test has a key. Its file."""
        file = self.key_file(name)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        seed = base64.urlsafe_b64encode(os.urandom(32)).rstrip(b"=")
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(b"threechains-private-key 1 " + seed + b"\n")
        return file

    def run(self, *arguments, **options):
        return run(IFUNC, *arguments, env=self.env, **options)

    def public_key(self, name="default"):
        shown = self.run("key", "show", name)
        found = re.search(r"ed25519:[\w-]{43}", shown.out)
        assert shown.code == 0 and found, f"showing the key {name}: {shown}"
        return found[0]

    def trust(self, name, key, *fields):
        """A line of the keyring for a key, or for the `default` key of another home."""
        key = key.public_key() if isinstance(key, Home) else key
        self.write_lines(*self.lines(), " ".join([name, key, *fields]))

    def lines(self):
        return self.keyring.read_text().splitlines() if self.keyring.exists() else []

    def write_lines(self, *lines):
        """These alone are the keyring from now on. It is replaced at once, so that no node reads half of it."""
        made = self.keyring.with_name("keyring.new")
        made.write_text("".join(line + "\n" for line in lines))
        made.chmod(0o600)
        made.rename(self.keyring)
