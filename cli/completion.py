"""Completion for bash, zsh and fish: the scripts, and the candidates that they ask for.

The scripts set `VARIABLE` and start the program, which then prints candidates and does nothing else. It reads only the
index of the last run, the names of directories, and the journal. Whatever goes wrong, it prints nothing.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from click.shell_completion import ShellComplete

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from click.shell_completion import CompletionItem

VARIABLE = "_RECONCILE_COMPLETE"
SCRIPTS = {
    "bash": """\
# bash completion for reconcile (bash 4.4 or newer)
_reconcile_completion() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :file) compopt -o default 2>/dev/null ;;
            :dir) compopt -o dirnames 2>/dev/null ;;
            *) COMPREPLY+=("$line") ;;
        esac
    done < <(COMP_LINE=${COMP_LINE:0:COMP_POINT} _RECONCILE_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _reconcile_completion reconcile
""",
    "zsh": """\
#compdef reconcile
# zsh completion for reconcile
_reconcile() {
    local line value
    local -a values shown
    local typed=${(pj:\\n:)words[1,CURRENT]}
    for line in "${(@f)$(COMP_WORDS=$typed _RECONCILE_COMPLETE=zsh_complete $words[1] 2>/dev/null)}"; do
        case $line in
            :file) _files ;;
            :dir) _files -/ ;;
            ?*)
                value=${line%%$'\\t'*}
                values+=("$value")
                shown+=("${line/$'\\t'/  -- }")
                ;;
        esac
    done
    if (( $#values )); then
        compadd -U -l -V reconcile -d shown -a values
    fi
}
if [[ $funcstack[1] = _reconcile ]]; then
    _reconcile "$@"
else
    compdef _reconcile reconcile
fi
""",
    "fish": """\
# fish completion for reconcile
function __reconcile_complete
    for line in (COMP_WORDS=(commandline -cp | string collect) _RECONCILE_COMPLETE=fish_complete reconcile 2>/dev/null)
        switch $line
            case ':file'
                __fish_complete_path (commandline -ct)
            case ':dir'
                __fish_complete_directories (commandline -ct)
            case '*'
                printf '%s\\n' $line
        end
    end
end
complete -c reconcile -f -k -a '(__reconcile_complete)'
""",
}
"""The script of each shell. `reconcile completion` prints it, and the wheel has the same as files."""
_BREAKS = re.compile(r".*[:=@]")
"""The part of a word that bash has behind itself when it completes the rest (COMP_WORDBREAKS)."""


def complete(instruction: str) -> None:
    """Print the candidates for the command line in the environment, as a script asks for them; never raise.

    It prints the script of a shell for click's `bash_source`: start files have that line.
    """
    shell, _, wanted = instruction.partition("_")
    if shell in SCRIPTS and wanted == "source":
        sys.stdout.write(SCRIPTS[shell])
        return
    try:
        printed = "".join(f"{line}\n" for line in _lines(shell, os.environ))
    except BaseException:  # noqa: BLE001 - a message would stand in the middle of the user's command line
        return
    sys.stdout.write(printed)


def _lines(shell: str, environ: Mapping[str, str]) -> Iterator[str]:
    if shell == "bash":
        typed = environ["COMP_LINE"]  # up to the cursor
        words = split(typed)
    elif shell == "zsh":
        words = [_unquoted(word) for word in environ["COMP_WORDS"].split("\n")]
        typed = ""
    else:
        typed = environ["COMP_WORDS"]
        words = split(typed)
    items = _candidates(words[1:-1], words[-1])
    name, equals, _ = words[-1].partition("=")
    option = f"{name}=" if equals and name.startswith("--") else ""  # zsh and fish complete the whole word
    for item in items:
        if item.type in ("file", "dir"):
            yield f":{item.type}"
            continue
        value = str(item.value)
        if shell == "bash":
            yield _for_bash(value, words[-1], typed)
        else:
            help_ = " ".join((item.help or "").split())
            yield f"{option}{value}\t{help_}" if help_ else f"{option}{value}"


def _candidates(words: list[str], incomplete: str) -> list[CompletionItem]:
    from .app import main

    return ShellComplete(main, {}, "reconcile", VARIABLE).get_completions(words, incomplete)


def _for_bash(value: str, word: str, typed: str) -> str:
    """Return what bash has to insert: quoted for the quote that is open, or without the part before a word break.

    A title is somebody's text. The shell must read it as one word, and run nothing of it.
    """
    import shlex

    quote = _open_quote(typed)
    if quote == '"':
        return re.sub(r'(["$`\\])', r"\\\1", value)
    if quote == "'":
        return value.replace("'", "'\\''")
    # Within quotes, no character breaks a word.
    if (before := _BREAKS.match(word)) and value.startswith(before[0]):
        value = value[len(before[0]) :]
    return shlex.quote(value)


def split(line: str) -> list[str]:
    """Split a command line that may end within quotes; the last word is empty after white space."""
    words, word, begun, quote, escaped = [], "", False, "", False
    for char in line:
        if escaped:
            word, escaped = word + char, False
        elif char == "\\" and quote != "'":
            begun = escaped = True
        elif quote:
            word, quote = (word, "") if char == quote else (word + char, quote)
        elif char in "'\"":
            begun, quote = True, char
        elif char.isspace():
            words += [word] if begun or word else []
            word, begun = "", False
        else:
            word += char
    return [*words, word]


def _open_quote(line: str) -> str:
    """Return the quote that is open at the end of a command line; empty: none is."""
    quote, escaped = "", False
    for char in line:
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
    return quote


def _unquoted(word: str) -> str:
    return split(word)[-1] if word else ""
