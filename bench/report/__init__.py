# SPDX-License-Identifier: Apache-2.0
"""One HTML page and its figures from the JSON that `ifunc bench` prints, beside what the main paper published."""
