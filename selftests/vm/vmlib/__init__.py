# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Boots test guests for sroce; see ../README.md."""
