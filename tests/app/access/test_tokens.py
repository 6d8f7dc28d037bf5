"""Tokens of programs: what is printed lets in, and what is stored does not give it away."""

import pytest
from tests.app.command_line import run

from goodput_app.access import tokens
from goodput_app.access.identity import Identity, Role
from goodput_app.settings import read

SIGN_IN = '[access]\nsign_in = "proxy"\nhosts = ["x"]\ndefault_role = "viewer"\n'


def test_a_printed_token_is_who_its_table_says(tmp_path):
    command = ["token", 'Grafana "1"', "--role", "finance", "--team", "nlp", "--days", "30"]
    result = run(*command)
    token = result.stdout.strip()
    path = tmp_path / "goodput.toml"
    path.write_text(SIGN_IN + result.stderr[result.stderr.index("[[access.tokens]]") :])

    access = read(path).access

    assert tokens.identity_of(token, access) == Identity(
        'token Grafana "1"', frozenset({Role.FINANCE}), frozenset({"nlp"})
    )
    assert tokens.identity_of(token + "x", access) is None
    assert token not in path.read_text()
    assert tokens.new_token() != token


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "needs 'access.sign_in'"),
        (SIGN_IN + "\n[[access.tokens]]\nname = 'a'\nsha256 = 'A'", "not a SHA-256 in lower case"),
        (SIGN_IN + "\n[[access.tokens]]\nname = 'a'\nkey = 1", "no setting 'access.tokens.key'"),
        (SIGN_IN + "TOKEN\nteams = []", "'access.tokens.teams' is empty"),
        (SIGN_IN + "TOKEN\nrole = 'root'", "'access.tokens.role'"),
        (SIGN_IN + "TOKENTOKEN", "two tables with the same name"),
    ],
)
def test_a_table_that_nobody_could_use_is_refused(refusal, table, said):
    token = f"\n[[access.tokens]]\nname = 'b'\nsha256 = '{tokens.digest('b')}'"

    assert said in refusal(table.replace("TOKEN", token) if table else token)
