"""Claudesidian, later called Nexus: what the files of a vault mean, and what is derived from them.

The facts are those of docs/design/formats/claudesidian.md. Everything here is pure: bytes and values in,
values and bytes out.
"""
