"""An address that others reach is refused, or served with a warning where that is wanted."""

import pytest
from tests.app.command_line import run

from goodput_app.cli import serve
from goodput_app.cli.serve import refuse_strangers
from goodput_queries.errors import GoodputError

EVERYWHERE = "0.0.0.0"  # noqa: S104 -- refused, not bound to


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", "127.0.0.2"])
def test_a_loopback_address_needs_no_word(address, capsys):
    refuse_strangers(address, is_insecure=False)

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("address", [EVERYWHERE, "::", "10.0.0.1", "gateway", "192.168.1.2"])
def test_an_address_that_others_reach_is_refused_or_warned_of(address, capsys):
    with pytest.raises(GoodputError, match="nobody signs in"):
        refuse_strangers(address, is_insecure=False)

    refuse_strangers(address, is_insecure=True)
    assert "Warning: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_nothing_is_served_or_made_before_the_address_is_allowed(tmp_path, monkeypatch, command):
    served = []
    monkeypatch.setattr(serve, "serve_at", lambda *_: served.append("yes"))
    monkeypatch.chdir(tmp_path)
    where = ("--dir", str(tmp_path / "demo")) if command == "demo" else ("--db", "a.duckdb")

    found = run(command, "--address", EVERYWHERE, *where)

    assert found.exit_code == 1
    assert "add --insecure" in found.stderr
    assert served == []
    assert list(tmp_path.iterdir()) == []


def test_a_site_may_allow_the_address_in_its_settings(tmp_path, monkeypatch):
    served = []
    monkeypatch.setattr(serve, "serve_at", lambda *_: served.append("yes"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "goodput.toml").write_text('[serve]\naddress = "0.0.0.0"\ninsecure = true\n')

    assert run("serve", "--no-collect").exit_code == 0
    assert served == ["yes"]
