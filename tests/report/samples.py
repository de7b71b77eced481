# SPDX-License-Identifier: Apache-2.0
"""Where the samples lie, and changed copies of them."""

import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def sample(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return json.load(file)


def write(directory, content, name="changed.json"):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path
