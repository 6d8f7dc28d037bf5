"""The weekly report in words: sentences, tables and lines as Markdown, for page and terminal.

One sentence a question: how good, what was wasted, what moved most, the worst incident, what was
done. Rows are those of marts; text from the data passes through `literal`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from goodput_app.text import units
from goodput_app.text.sentences import sentence
from goodput_app.weekly.ledger_groups import by_team
from goodput_app.weekly.like_for_like import Compared, changes, said_of
from goodput_app.weekly.week import Week

FAULTS = ("health", "failures", "hangs", "network", "numerics", "hosts", "throttling")  # kinds
LOSSES_SHOWN = 5
TEAMS_SHOWN = 10
NO_TEAM = "(no team)"
NO_IDLE = pl.DataFrame(schema={"team": pl.String, "idle_ms": pl.Int64})


@dataclass(frozen=True)
class Writer:
    """What writes Markdown. literal: text of the data, as it is shown; moment: a time (UTC)."""

    literal: Callable[[object], str]
    moment: Callable[[datetime], str]

    def goodput(self, week: Week) -> Iterator[str]:
        """Yield sentences of the headline and of what was wasted, with their changes."""
        summary, first, compared = week.summary, week.first, week.compared
        said = f"**{first.label}: {first.text}**" + (f" ({first.bound})" if first.bound else "")
        if compared is None:
            said += "; no earlier week is compared"
        elif first.rung == "goodput" and compared.change is not None:
            moved = units.points(compared.change.ratio)
            direction = "certain" if compared.change.is_certain else "not certain"
            said += f", {moved} points against {self.literal(compared.windows.name)}, like for like"
            said += f" (direction {direction})"
        yield f"{said}."
        amounts = (summary["wasted_cost"], summary["capacity_cost"])
        wasted, of = (self.literal(units.cost(amount, beside=amounts)) for amount in amounts)
        share = summary["wasted_ms"] / summary["capacity_ms"] if summary["capacity_ms"] else None
        time = f"{units.gpu_time(summary['wasted_ms'])}, {units.percent(share)} of the capacity"
        said = f"**{wasted} of {of}** was wasted ({time})"
        if summary["capacity_cost"] is None:
            said = f"**{time}**, was wasted; there is no price"
        if text := wasted_change(compared):
            said += f", {self.literal(text)} like for like"
        yield f"{said}."

    def moved(self, week: Week) -> Iterator[str]:
        """Yield which group moved most, and the team that moved it."""
        if (compared := week.compared) is None:
            return
        rows = changes(compared.now, compared.then, compared.wasted)
        if not rows:
            yield "Nothing moved."
            return
        label, amount, _ = max(rows, key=lambda row: (row[0] != "others", abs(row[1])))
        said = f"What moved most is **{label}**: {self._signed(amount, week)}"
        of_it = week.by_teams.filter(label=label, is_more=amount > 0)
        team, moved = of_it.row(0)[::2] if of_it.height else (None, None)
        if team is not None:
            said += f", of which {self._signed(moved, week)} by {self.literal(team)}"
        yield f"{said}."

    def happened(self, findings: pl.DataFrame, repairs: pl.DataFrame) -> Iterator[str]:
        """Yield the worst incident, and what people and health checks acted on.

        findings: marts.findings; repairs: marts.repairs
        """
        worst = findings.filter(pl.col("kind").is_in(FAULTS), pl.col("state") != "dismissed").sort(
            pl.col("open_severity") != "page", -pl.col("cost").fill_null(0), maintain_order=True
        )
        if worst.is_empty():
            yield "No incident is on record."
        else:
            row = worst.row(0, named=True)
            said = self.literal(sentence(row["title"], row["subject"] or ""))
            when = self.moment(row["since_at"])
            if row["until_at"] != row["since_at"]:
                until = self.moment(row["until_at"]) if row["until_at"] else "the end of the data"
                when = f"between {when} and {until}"
            yield (
                f"The worst incident: **{said}**, {when}, "
                f"{units.gpu_time(row['gpu_ms'])}, {self.literal(units.cost(row['cost']))}."
            )
        acted = repairs.drop_nulls("acted_at")
        counts = dict(findings.group_by("state").len().rows())
        done = []
        if acted.height:
            back = acted["end_at"].count()
            done.append(f"{units.count(acted.height, 'node repair')}, {back:,} back in service")
        done += [
            f"{units.count(counts[state], 'finding')} {state}"
            for state in ("acknowledged", "dismissed")
            if state in counts
        ]
        yield f"Acted on: {'; '.join(done) or 'no repair and no finding on record'}."

    def waterfall(self, compared: Compared) -> str:
        """Return what each group added to what was wasted in the earlier window, as a table."""
        is_priced = compared.wasted == "wasted_cost"
        before, after = (
            self.literal(units.amount(total, is_priced=is_priced)) for total in compared.totals
        )
        moved = [
            (label, self.literal(units.signed(amount, is_priced=is_priced)))
            for label, amount, _ in changes(compared.now, compared.then, compared.wasted)
        ]
        first = (f"Wasted in {compared.windows.name}", before)
        rows = [first, *moved, ("Wasted in this week", after)]
        return f"{_table(('Group', 'Amount:'), rows)}\n\n{self.literal(said_of(compared.windows))}"

    def teams(self, week: Week) -> str:
        """Return what each team lost, and by how much that moved."""
        column = "wasted_cost" if week.is_priced else "wasted_ms"
        teams = by_team(week.waste, NO_IDLE).head(TEAMS_SHOWN).select("team", column)
        rows = []
        for team, amount in teams.iter_rows():
            row = [self._team(team), self._amount(amount, week, teams[column])]
            if week.compared is not None:
                of_it = week.by_teams.filter(pl.col("team").eq_missing(team))
                moved = self._signed(float(of_it["change"].sum()), week)
                row += moved, ", ".join(of_it["label"][:1])
            rows.append(row)
        headers = ("Team", "Wasted:", "Change:", "What moved most")
        return _table(headers if week.compared is not None else headers[:2], rows)

    def losses(self, losses: pl.DataFrame) -> str:
        """Return the largest losses with what to do. losses: `ranked.LOSSES_OF_TEAMS`."""
        losses = losses.head(LOSSES_SHOWN)
        rows = [
            (
                row["label"],
                self.literal(place(row)),
                self._team(row["team"]),
                self.literal(units.cost(row["cost"], beside=losses["cost"])),
                units.gpu_time(row["gpu_ms"]),
                self.literal(row["fix"] or "No action is known."),
            )
            for row in losses.iter_rows(named=True)
        ]
        return _table(("Loss", "Where", "Team", "Cost:", "GPU time:", "What to do"), rows)

    def objectives(self, objectives: pl.DataFrame) -> Iterator[str]:
        """Yield a line of each objective. objectives: marts.goodput_objectives."""
        for row in objectives.iter_rows(named=True):
            burns = ", burning now" if row["is_burning"] else ""
            left_out = ""
            if row["unsettled_ms"]:
                share = units.percent(row["unsettled_ms"] / row["base_ms"])
                left_out = f"; unclassified time ({share}) spends none"
            yield (
                f"- Objective {self.literal(row['name'])}: {units.percent(row['attained_ratio'])}, "
                f"target {units.percent(row['target_ratio'])}, error budget "
                f"{units.percent(row['budget_spent_ratio'])} spent{burns}{left_out}"
            )

    def budgets(self, budgets: pl.DataFrame, team: str | None) -> Iterator[str]:
        """Yield a line of each account with a budget, or of one. budgets: `budgets.SCHEMA`."""
        if team is not None:
            budgets = budgets.filter(account=team)
        have = budgets.drop_nulls("budget_cost").with_columns(pl.selectors.decimal().cast(float))
        for row in have.sort("spent_ratio", descending=True, nulls_last=True).iter_rows(named=True):
            spent, budget = (
                self.literal(units.cost(row[name])) for name in ("month_cost", "budget_cost")
            )
            cluster = f" ({self.literal(row['cluster'])})" if row["cluster"] else ""
            line = f"- Budget of {self.literal(row['account'])}{cluster}: {spent} of {budget}"
            line += f" spent, month to date ({units.percent(row['spent_ratio'])})"
            if (forecast := row["forecast_cost"]) is not None:
                over = ", over the budget" if forecast > row["budget_cost"] else ""
                line += f", forecast {self.literal(units.cost(forecast))}{over}"
            yield line

    def _amount(self, amount: float | None, week: Week, beside: pl.Series) -> str:
        if not week.is_priced:
            return units.gpu_time(amount)
        return self.literal(units.cost(amount, beside=beside))

    def _team(self, team: str | None) -> str:
        return self.literal(team or NO_TEAM)

    def _signed(self, amount: float, week: Week) -> str:
        return self.literal(units.signed(amount, is_priced=week.is_priced))


def place(row: Mapping[str, Any]) -> str:
    """Return the name of where a loss was: its run, else its node or cluster."""
    return str(row.get("run_name") or row["run_id"] or row["node"] or row["cluster"])


def wasted_change(compared: Compared | None) -> str:
    """Return how much more or less was wasted, in money and percent; empty where not known."""
    if compared is None or compared.wasted != "wasted_cost":
        return ""
    before, after = compared.totals
    if not before:
        return ""
    share = units.percent(abs(after - before) / before)
    return f"{units.signed(after - before, is_priced=True)}, {units.sign_of(after - before)}{share}"


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; columns whose header ends with a colon have numbers."""
    if not rows:
        return "Nothing was lost."
    names = [name.rstrip(":") for name in headers]
    lines = [names, ["---:" if name.endswith(":") else "---" for name in headers], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
