"""Leslie's ``.leslie/``: two control files, a directory for each thread, and what of them follows from the log.

All of it is pure: values in, values out. The facts are those of docs/design/formats/leslie.md. A module for each
question: `document` (may it be read), `schema` (would the program read it), `replay` (what follows from the log),
`rebuild` and `objectives` (what differs from that), `union` (two versions), `mending` and `salvage` (what is left of a
damaged file), `findings` (what is wrong, and what mends it). What the engine asks for is in `format`, from `joining`
(which side's version is right) and `derived` (repairs for a plan).
"""
