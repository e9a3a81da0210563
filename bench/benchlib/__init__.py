# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The benchmark: what is measured, how, and what is made of it."""
