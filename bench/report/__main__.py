# SPDX-License-Identifier: Apache-2.0
"""`ifunc bench report` runs this folder: python3 .../report RESULTS... -o DIRECTORY."""

import os
import sys

if not __package__:  # run as a folder, not with -m: the model's package lies beside this one
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from report.command import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
