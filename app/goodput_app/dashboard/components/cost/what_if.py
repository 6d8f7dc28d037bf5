"""What if: a scenario's inputs with where each comes from, and its answers with their formulas."""

import re
from decimal import Decimal, InvalidOperation

import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import statements
from goodput_app.dashboard.scope import View
from goodput_app.text import units
from goodput_scenarios import scenario
from goodput_scenarios.scenario import Answer, Field, Given, Scenario
from goodput_scenarios.scenarios import SCENARIOS
from goodput_scenarios.span import Span

SUBJECTS = {
    "upgrade": "GPUs to replace",
    "halve-a-loss": "Loss",
    "checkpoints": "Run",
    "power-cap": "GPUs to cap",
}
VALUE_MAX_CHARS = 24
VIEW = re.compile(r"^marts\.\w+(: )?")  # that a value is read from: the command says it, too
KIND_BADGES: dict[str, tuple[str, theme.Badge]] = {
    "measured": ("measured", "green"),
    "assumed": ("assumed", "orange"),
    "given": ("given", "blue"),
}


def show(view: View) -> None:
    """Draw the part of the page: the question, its inputs and its answers."""
    name = _scenario_name()
    asked = scenario.in_currency(SCENARIOS[name], units.currency())
    st.subheader(asked.question, anchor=False)
    known = _subject(view, asked)
    values = scenario.filled(asked, known, _given(asked))
    left, right = st.columns([1, 1.1], gap="large")
    with left, panel("Assumptions", "what_if.measured"):
        st.caption("Change any value; an empty field restores the measured one.")
        for begin in range(0, len(asked.fields), 2):
            for column, field in zip(st.columns(2), asked.fields[begin : begin + 2], strict=False):
                with column:
                    _input(field, values.get(field.name), known.get(field.name))
    with right, panel("Result", f"what_if.{name}"):
        if lacking := scenario.missing(asked, values):
            labels = ", ".join(field.label for field in lacking)
            st.info(f"Input needed: {labels}.", icon=":material/help:")
        _answers(scenario.solved(asked, values))


def _scenario_name() -> str:
    titles = {name: one.title for name, one in SCENARIOS.items()}
    asked = st.query_params.get("ask", "")
    current = asked if asked in titles else next(iter(titles))
    st.session_state["what_if_scenario"] = current
    st.pills(
        "What if",
        list(titles),
        key="what_if_scenario",
        format_func=lambda name: titles[name],
        on_change=lambda: scope_bar.go(
            {**_no_values(), "of": None, "ask": st.session_state["what_if_scenario"] or current}
        ),
        label_visibility="collapsed",
    )
    return current


def _no_values() -> dict[str, str | None]:
    return {field.name: None for one in SCENARIOS.values() for field in one.fields}


def _subject(view: View, asked: Scenario) -> dict[str, Given]:
    """Draw the choice of what is asked about, and return what is measured of it."""
    choices = statements.what_if_choices(asked.name, view.scope)
    where = time_zone.window(view.start, view.end)
    if not choices:
        st.info(
            f"Not measured in {where}; the result follows from the values entered here.",
            icon=":material/hourglass_empty:",
        )
        return {}
    wanted = st.query_params.get("of", view.scope.run or "")
    current = wanted if wanted in choices else next(iter(choices))
    left, note = st.columns([1.2, 2.2], vertical_alignment="bottom")
    st.session_state["what_if_of"] = current
    with left:
        st.selectbox(
            SUBJECTS[asked.name],
            list(choices),
            key="what_if_of",
            format_func=lambda value: theme.printable(choices[value]),
            on_change=lambda: scope_bar.go({**_no_values(), "of": st.session_state["what_if_of"]}),
        )
    finer = [name for name in ("team", "node", "run") if view.filters.get(name)]
    whole = f" The filter on {' and '.join(finer)} does not apply." if finer else ""
    note.caption(f"Measured in {where}, of whole clusters.{whole}")
    return statements.what_if_measured(asked.name, view.scope, current)


def _given(asked: Scenario) -> dict[str, Decimal]:
    """Return the values of the URL; a wrong one is named and ignored."""
    found = {}
    for field in asked.fields:
        text = st.query_params.get(field.name)
        if text is None:
            continue
        try:
            amount = Decimal(text)
            scenario.filled(asked, {}, {field.name: amount})
        except InvalidOperation:
            st.warning(theme.markdown_text(f"{field.label}: {text!r} is not a number."))
        except ValueError as error:
            st.warning(theme.markdown_text(f"{error}."))
        else:
            found[field.name] = amount
    return found


def _input(field: Field, given: Given | None, measured: Given | None) -> None:
    key = f"what_if_{field.name}"
    is_given = given is not None and given.kind == "given"
    st.session_state[key] = float(given.span.lo) if given is not None and is_given else None
    default = measured
    if default is None and field.assumed is not None:
        shown = f"{field.assumed}"
    else:
        shown = "unknown" if default is None else plain(default.span)

    def changed() -> None:
        typed = st.session_state[key]
        scope_bar.go({field.name: None if typed is None else f"{typed:.12g}"})

    st.number_input(
        f"{field.label} ({field.unit})",
        key=key,
        value=None,
        placeholder=shown,
        help=field.meaning,
        format="%.10g",
        step=None,
        on_change=changed,
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if given is None:
            st.badge("input needed", color="red")
            st.caption(theme.markdown_text(field.meaning))
            return
        words, colour = KIND_BADGES[given.kind]
        st.badge(words, color=colour)
        if given.kind == "measured":
            st.caption(theme.markdown_text(VIEW.sub("", given.source)))
        elif given.kind == "assumed":
            st.caption(theme.markdown_text(field.meaning))
        elif given.kind == "given" and measured is not None:
            st.caption(theme.markdown_text(f"measured: {plain(measured.span)}"))


def _answers(answers: list[Answer]) -> None:
    ranked = sorted(answers, key=lambda answer: not answer.is_headline)
    for begin in range(0, len(ranked), 2):
        columns = st.columns(2, gap="small")
        for column, answer in zip(columns, ranked[begin : begin + 2], strict=False):
            with column, st.container(border=True, height="stretch", gap="xsmall"):
                label, value = _said(answer)
                st.metric(label, theme.markdown_text(value))
                st.caption(theme.markdown_text(f"= {answer.formula}"))
                st.markdown(f":small[{theme.markdown_text(answer.worked)}]")


def _said(answer: Answer) -> tuple[str, str]:
    """Return label and value; a unit that the value has no room for goes to the label."""
    if answer.span is None:
        return answer.label, units.NOT_KNOWN
    value = amount(answer.span, answer.unit)
    if len(value) <= VALUE_MAX_CHARS or answer.unit in (units.currency(), "s"):
        return answer.label, value
    return f"{answer.label} ({answer.unit})", plain(answer.span)


def amount(span: Span, unit: str) -> str:
    """Return an answer as it is read: `$175,200`, `1h 57m`, `12.0 to 24.0 months`."""
    if unit == units.currency():
        ends = [units.cost(float(end)) for end in (span.lo, span.hi)]
    elif unit == "s":
        ends = [units.duration(float(end)) for end in (span.lo, span.hi)]
    else:
        ends = [_decimals(end) for end in (span.lo, span.hi)]
    text = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    return text if unit in (units.currency(), "s") else f"{text} {unit}"


def plain(span: Span) -> str:
    """Return a value as an input shows it."""
    ends = [_decimals(end) for end in (span.lo, span.hi)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _decimals(value: Decimal) -> str:
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 else f"{float(value):,.4g}"
