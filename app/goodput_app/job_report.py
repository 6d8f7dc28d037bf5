"""What a scheduler's job came to: a paragraph for its output and for portals, or a short table."""

import functools
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from goodput_app import ranked
from goodput_app.access import rows
from goodput_app.page_links import page_url
from goodput_app.text import headline, units
from goodput_messages.printable import printable
from goodput_queries.errors import QueryError
from goodput_queries.names import resolved
from goodput_queries.scope import Scope
from goodput_queries.storage.database_file import Reader

FORMS: Final = ("paragraph", "table")
WIDTH: Final = 100
TEXT_MAX_CHARS: Final = 300
LOSSES_SHOWN: Final = 3
_filled = functools.partial(textwrap.fill, width=WIDTH, break_on_hyphens=False)


@dataclass(frozen=True)
class JobReport:
    """A job's run, over all its attempts.

    run: a row of marts.runs. losses: of marts.run_categories, the largest first. verdict: of
    marts.run_verdicts; None without a finding. page: the address of the run's page, if known.
    """

    job: str
    run: Mapping[str, Any]
    losses: list[dict[str, Any]]
    verdict: Mapping[str, Any] | None
    data_until: datetime
    page: str | None

    def facts(self) -> dict[str, str]:
        """Return what is known, in the order of reading."""
        run = self.run
        goodput, bound = headline.of_run(run)
        state = "running" if run["is_running"] else _text(run["state"] or "state unknown")
        largest = [f"{one['label']} {units.gpu_time(one['gpu_ms'])}" for one in self.losses]
        parts = f" ({', '.join(largest)})" if largest else ""
        found = {
            "Job": f"{_text(self.job)}, run {_text(run['run_name'] or run['run_id'])}, {state}",
            "Goodput (% of allocated)": f"{goodput} ({bound})" if bound else goodput,
            "Allocated": f"{units.gpu_time(run['held_ms'])} on {units.count(run['gpus'], 'GPU')}",
            "Wasted": f"{units.gpu_time(run['wasted_ms'])}{parts}",
        }
        if run["unsettled_ms"]:
            found["Unclassified"] = units.gpu_time(run["unsettled_ms"])
        if run["cost"] is not None:
            wasted = units.cost(run["wasted_cost"], beside=[run["cost"]])
            found["Cost"] = f"{units.cost(run['cost'])}, of which wasted {wasted}"
        found["Why"] = "no loss of the run is large enough for a finding"
        if why := self.verdict:
            cause = f" ({_text(why['cause'])})" if why["cause"] else ""
            said = f"{_text(why['title'])}{cause}; {_text(why['evidence'])}"
            found["Why"] = f"{said} ({_text(why['confidence'])})"
            found["Change first"] = _text(why["what_to_do"])
        return {**found, "Data until": f"{self.data_until:%Y-%m-%d %H:%M:%S}Z"}

    def text(self, form: str) -> str:
        """Return the report in one of FORMS, the last line with the address of the page."""
        facts = self.facts()
        if form == "paragraph":
            said = " ".join(f"{name}: {text}." for name, text in facts.items())
            return "\n".join(filter(None, [_filled(said), self.page])) + "\n"
        width = max(map(len, facts)) + 2
        lines = [
            _filled(text, initial_indent=f"{name}:".ljust(width), subsequent_indent=" " * width)
            for name, text in facts.items()
        ]
        page = [f"{'Page:'.ljust(width)}{self.page}"] if self.page else []
        return "\n".join([*lines, *page, ""])


def job_report(
    store: Reader, job: str, base_url: str | None = None, cluster: str | None = None
) -> JobReport:
    """Return the report of a job, by its number, or of a run, by its key, id or name.

    Raises QueryError for one that the ledger does not know, or that had no GPU.
    """
    scope = resolved(store, rows.limited(Scope(run=job, cluster=cluster)))
    found = ranked.runs(store, scope).to_dicts()
    if not found:
        raise QueryError("the job had no GPU.")
    losses = """select label, gpu_ms from marts.run_categories
        where run_key = $1 and kind = 'badput' order by gpu_ms desc limit $2"""
    until = "select max(as_of_at) as at from marts.clusters where cluster = $1"
    verdicts = store.read("select * from marts.run_verdicts", scope=scope).to_dicts()
    return JobReport(
        job=job,
        run=found[0],
        losses=store.read(losses, [scope.run, LOSSES_SHOWN], scope=scope).to_dicts(),
        verdict=verdicts[0] if verdicts else None,
        data_until=store.read(until, [found[0]["cluster"]]).item(),
        page=page_url(base_url, "run", scope) if base_url else None,
    )


def _text(text: object) -> str:
    """Return a name or an evidence that moves no cursor and fills no screen."""
    shown = printable(str(text)).rstrip(".")
    return shown if len(shown) <= TEXT_MAX_CHARS else f"{shown[: TEXT_MAX_CHARS - 1]}…"
