"""Leslie's format: the two control files of a ``.leslie``, and the directories of its threads.

The facts are in docs/design/formats/leslie.md. Everything here is pure: bytes and values in, values and bytes out.
"""
