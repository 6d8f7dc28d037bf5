"""Part of `goodput doctor`: whether each target of notifications answers. Nothing is sent."""

from collections.abc import Iterator

from goodput_app.settings import settings, settings_file
from goodput_messages.send import probe
from goodput_queries.errors import GoodputError

Finding = tuple[str, str, str, str]  # as in doctor.py: what, status, found, next


def notification_findings() -> Iterator[Finding]:
    """Yield whether the server of each [[notify]] target answers."""
    try:
        chosen = settings()
    except GoodputError:  # said already
        return
    for target in chosen.notify:
        what = f"notify {target.label}"
        try:
            yield what, "ok", f"{probe(target, chosen.report.mail)} answers", ""
        except GoodputError as error:
            fix = f"fix it there, or [[notify]] in {settings_file()}; then goodput notify --test"
            yield what, "problem", str(error), fix
