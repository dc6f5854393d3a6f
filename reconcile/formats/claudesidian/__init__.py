"""Claudesidian, later called Nexus: what the files of a vault mean, and what is derived from them.

The facts are on the format's own page, formats/claudesidian.md; section numbers in this package are its. Everything
here is pure: bytes and values in, values and bytes out.
"""
