"""Claudesidian, later called Nexus: the meaning of the files of a vault, and the data derived from them.

The facts are in docs/design/formats/claudesidian.md. Everything here is pure: bytes and values in, values and bytes
out.
"""
