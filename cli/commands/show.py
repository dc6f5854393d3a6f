"""``reconcile show``: print a version from the vault."""

from __future__ import annotations

import sys

import click

from reconcile.engine.version_names import find_versions

from ..context import find_roots, open_session, settings_of
from ..options import common_options, options_of
from ..output.text import Style, clean, size
from ..output.timestamps import date


@click.command(name="show")
@common_options
@click.argument("version")
@click.pass_context
def command(context: click.Context, version: str) -> None:
    """Print VERSION: ID@RUN, ID@RUN:metadata, ID@RUN:stream, or the beginning of a digest.

    Several files are printed one after the other, each below its name. Into a pipe or a file, one file is
    written byte for byte.
    """
    options = options_of(context)
    roots = find_roots(options)
    with open_session(roots, settings_of(roots), readonly=True) as session:
        versions = find_versions(session.state, version, session.format)
        contents = {each.digest: session.vault.read(each.digest) for each in versions}
    if options.json:
        import base64
        import json

        found = [
            {
                "conversation": each.conversation,
                "unit": each.unit,
                "file": each.file,
                "digest": each.digest,
                "size": each.size,
                "run": each.run,
                "content": base64.b64encode(contents[each.digest]).decode(),
            }
            for each in versions
        ]
        click.echo(json.dumps({"format": "reconcile.show/1", "versions": found}, indent=2))
        return
    terminal = sys.stdout.isatty()
    if len(versions) == 1 and not terminal:
        sys.stdout.buffer.write(contents[versions[0].digest])
        return
    style = Style.choose(options.color)
    for each in versions:
        where = f"{each.side}:{each.path}"
        click.echo(style(f"{clean(where)}  {size(each.size)}  {date(each.mtime_ns)}  {each.digest[:16]}", bold=True))
        for line in contents[each.digest].decode(errors="surrogateescape").splitlines():
            click.echo(clean(line))
