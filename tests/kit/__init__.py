# SPDX-License-Identifier: Apache-2.0
"""What tests with real processes share. They are pytest's: tests/conftest.py has the fixtures."""

from .build import *
from .home import Home
from .network import Namespaces, free_addresses, inside
from .process import Node, Process, Result, environment, run, run_until, slowness
from .terminal import Terminal
from .workspace import Workspace
