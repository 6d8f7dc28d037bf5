"""The command `goodput`, also as `python -m goodput_app`.

Imports nothing but the standard library until it runs, so that a package that is missing or broken
is one sentence instead of a traceback.
"""

import os
import shlex
import sys


def main() -> None:
    """Run the command line; exit code 1 and one sentence where a package cannot be imported."""
    try:
        from goodput_app.cli.main import main as command  # noqa: PLC0415 -- imports other packages

        command()
    except ImportError as error:
        if os.environ.get("GOODPUT_DEBUG"):
            raise
        sys.exit(_sentence(error))


def _sentence(error: ImportError) -> str:
    """Return what cannot be imported, and the command that repairs this environment."""
    pip = shlex.join([sys.executable, "-m", "pip"])
    package = (error.name or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package:
        return (
            f"goodput: the Python package {package!r} is not installed in this environment; "
            f"install Goodput again: `{pip} install --force-reinstall` with what it was "
            "installed from (`.` in a clone, or the wheel)."
        )
    return (
        f"goodput: a package cannot be imported ({error}); `{pip} check` names what does not fit "
        "together, and GOODPUT_DEBUG=1 shows where it fails."
    )


if __name__ == "__main__":
    main()
