# SPDX-License-Identifier: Apache-2.0
"""What a test with real processes has for itself."""

import os
import pathlib
import shutil
import tempfile

import pytest

from .build import CLIENT, IFUNC, IFUNC_SOURCES
from .home import Home
from .network import Namespaces
from .process import Node, Process, run


class Workspace:
    """A directory of a test's own, ifuncs that it builds, and processes that end with it: the fixture `t`."""

    def __init__(self, own_home):
        self.own_home = own_home  # that processes have unless told another
        self.directory = tempfile.mkdtemp(prefix="threechains-test-")
        self.processes, self.cleanups = [], []

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        pathlib.Path(path).write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def home(self, name):
        """Keys and keyring of somebody else: `env=t.home("ana").env`."""
        return Home(self.path(f"homes/{name}"))

    run = staticmethod(run)

    def ifunc(self, *arguments, **options):
        return self.run(IFUNC, *arguments, **options)

    def start(self, *arguments, env={}, kind=Process):
        process = kind(list(arguments), env, self.path(f"process{len(self.processes)}"))
        self.processes.append(process)
        return process

    def serve(self, *options, env={}, prefix=(), machine=None):
        command = machine.command if machine else [IFUNC]
        node = self.start(*prefix, *command, "serve", *options, env=env, kind=Node)
        node.wait_until_ready()
        return node

    def serve_member(self, addresses, number, *options, **how):
        """The node with that number of the cluster whose nodes have these addresses."""
        return self.serve("--listen", addresses[number], "--id", str(number), "--cluster", ",".join(addresses), *options, **how)

    def client(self, *arguments, **options):
        if not os.path.exists(CLIENT):
            pytest.skip("tc_test_client is not built")
        return self.run(CLIENT, *arguments, **options)

    def build(self, source, *options):
        """Builds an ifunc from a file of tests/ifuncs or from `NAME.c` written with write(). The .ifunc file."""
        given = pathlib.Path(source)
        path = given if given.is_absolute() else IFUNC_SOURCES / source
        # Names may repeat within a case (another version of an ifunc): each gets a directory.
        out = os.path.join(tempfile.mkdtemp(dir=self.directory), path.stem + ".ifunc")
        result = self.ifunc("build", str(path), "-o", out, *options)
        assert result.code == 0, f"building {source}: {result}"
        return out

    def namespaces(self, count=2):
        """Network namespaces joined by a bridge: (name, address) of each."""
        made = Namespaces(count)
        self.cleanups.append(made.remove)
        made.create()
        return list(zip(made.names, made.addresses))

    def close(self):
        for process in self.processes:
            process.kill()
        for cleanup in self.cleanups:
            cleanup()
        shutil.rmtree(self.directory, ignore_errors=True)
