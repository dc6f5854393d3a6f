"""Commands that messages suggest, as a person types them."""

from __future__ import annotations


def typed(*words: str) -> str:
    """Return ids and paths as they are typed in a shell, each quoted if need be: an id may have a title in it.

    Before a dash stands ``./``, as for files: no command takes the word for an option.
    """
    return " ".join(quoted(f"./{word}" if word.startswith("-") else word) for word in words)


def quoted(word: str) -> str:
    """Quote a word for a shell if need be. What a terminal acts on is escaped, as bash and zsh read it."""
    import shlex  # here: most runs suggest no command

    return shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_escaped, word))}'"


def _escaped(char: str) -> str:
    if char.isprintable() and char not in "\\'":
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def install_command(package: str, environment: str, python: str) -> str:
    """Return the command that installs a package into an environment: one of pipx, of uv, or another."""
    directories = environment.replace("\\", "/").rstrip("/").split("/")
    if "pipx" in directories:
        return f"pipx inject {typed(directories[-1], package)}"
    if "uv" in directories:
        return f"uv pip install --python {typed(python, package)}"
    return f"{typed(python)} -m pip install {typed(package)}"
