# SPDX-License-Identifier: Apache-2.0
"""Scale on paper: the pointer chase's rate for any number of servers, from a few measured costs. See README.md."""
