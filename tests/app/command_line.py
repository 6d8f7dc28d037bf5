"""What tests of the command line share: a command, run here, what it says and its rows."""

import json

from click.testing import CliRunner

from goodput_app.cli import main


def run(*arguments):
    return CliRunner().invoke(main.main, arguments)


def failing(*arguments, code=1):
    """Run a command that ends with a code, without a traceback; return what it says."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.stderr
    return str(result.stderr)


def rows(*arguments):
    """Run a command that ends well; return its rows."""
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return list(json.loads(result.stdout))
