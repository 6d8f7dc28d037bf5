"""A process's command line as it may be stored: without secrets, capped, and its short name."""

import re
from pathlib import PurePosixPath

COMMAND_MAX_CHARS = 1000
NAME_MAX_CHARS = 100
HIDDEN = "***"
SCRIPTS = (".py", ".sh", ".pl", ".lua", ".jl", ".R")
# how a name ends: `--hf-token`, `api_key`; not `--max-tokens`, `--tokenizer`, `--monkey`
SECRET_NAME = re.compile(
    r"(?:token|password|passwd|passphrase|secret|apikey|credentials?"
    r"|(?:^|[-_.])(?:key|pass|pwd|auth|authorization|cookie))$",
    re.IGNORECASE,
)
NAME_CHARS = 60  # of the end of a name: enough to judge it by
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")  # of an environment
BETWEEN = re.compile(r"([\s,;&?{}()]+)")  # what separates words, also in addresses and JSON
ASSIGNED = re.compile(r"([^=:]*[=:])(.*)", re.DOTALL)
SCHEMES = ("bearer", "basic")  # of an Authorization header; the credentials follow
IN_ADDRESS = re.compile(r"(://)[^/@]*@")
KNOWN_TOKENS = re.compile(
    r"\b(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|xox[abps]-|AKIA|eyJ)[\w.-]{12,}|\b[0-9a-f]{40}\b"
)


def without_secrets(arguments: list[str]) -> str:
    """Return a command line for display, in which values that look like secrets are `***`.

    Values of options, of `NAME=value` and of addresses go by what names them; tokens of well-known
    services by their form. A secret that nothing names is not found.
    """
    shown: list[str] = []
    for argument in arguments:
        is_value = bool(shown) and _is_secret_option(shown[-1]) and not argument.startswith("-")
        shown.append(HIDDEN if is_value else argument)
    pieces = BETWEEN.split(" ".join(" ".join(shown).split())[: 8 * COMMAND_MAX_CHARS])
    is_next = False
    for place, word in enumerate(pieces[::2]):
        pieces[2 * place], is_next = _word(word, is_value=is_next)
    return KNOWN_TOKENS.sub(HIDDEN, "".join(pieces))[:COMMAND_MAX_CHARS]


def _word(word: str, *, is_value: bool) -> tuple[str, bool]:
    """Return a word as it is shown, and whether the next one is a secret."""
    bare = word.strip("\"'")
    if is_value and bare.lower() in SCHEMES:
        return word, True
    if is_value and bare and not bare.startswith("-"):
        return HIDDEN, False
    if found := ASSIGNED.fullmatch(IN_ADDRESS.sub(rf"\1{HIDDEN}@", word)):
        name = found[1][:-1].strip("\"'")
        if VARIABLE.fullmatch(name) or SECRET_NAME.search(name[-NAME_CHARS:]):
            return (found[1] + HIDDEN, False) if found[2] else (word, True)
        return found[0], False
    return word, _is_secret_option(bare) or bare.lower() == SCHEMES[0]


def _is_secret_option(word: str) -> bool:
    return word.startswith("-") and SECRET_NAME.search(word[-NAME_CHARS:]) is not None


def short_name(arguments: list[str]) -> str:
    """Return what people call a command: its script, the module of `python -m`, or its program."""
    program = PurePosixPath(arguments[0]).name if arguments else ""
    name = program
    for option, value in zip(arguments[1:], [*arguments[2:], ""], strict=False):
        if option.endswith(SCRIPTS) and not option.startswith("-"):
            name = PurePosixPath(option).name
            break
        if option == "-c":
            break
        if option == "-m" and program.startswith("python") and value:
            name = value
            break
    return without_secrets([name])[:NAME_MAX_CHARS]
