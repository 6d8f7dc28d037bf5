"""Lines in = rows + rejects + lines known to say nothing: no reader loses a fact without a word.

For each format of lines a line of a recorded file that bears a fact (without it the file gives
something else) is altered as another release, a fork or a cut would. As long as it still has what
tells it from any other text, it gives something, too, or is rejected.
"""

import contextlib
import re
from collections import Counter
from itertools import zip_longest

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ingest.golden_cases import CASES, OF_SOURCES, input_of, name_of, of_cases, options_of

from goodput_ingest.sources.job_logs.formats import formats
from goodput_ingest.sources.registry import sources
from goodput_queries.errors import IngestError

OF_FORMATS = OF_SOURCES["job-log"]["telling"]  # by format of a job's log
# patterns of the lines of a source, which may say nothing; a group is a name, of which
# another one may be known to say nothing
TELLING = {name: of["telling"] for name, of in OF_SOURCES.items() if "telling" in of}
TELLING["job-log"] = "|".join(OF_FORMATS.values())
# of what TELLING names, lines that say nothing
SILENT = {name: of["silent"] for name, of in OF_SOURCES.items() if "silent" in of}
# one document, of which a cut leaves nothing or says so; or bytes that are no text
DOCUMENTS = {"bundle", "operation-trace"}  # Parquet without golden cases
DOCUMENTS |= {name for name, of in OF_SOURCES.items() if "is_document" in of}
REPEATING = {  # what a rank, instance or other name of a metric repeats says nothing new
    "torchtitan_ranks_that_write_the_same",
    "torchtitan_unlabelled_ranks", "deepspeed_host_before_each_line",
    "copies_instances_and_parts_of_a_gpu", "jobstats_before_labels_of_jobs_and_instances",
    "readings_of_renamed_and_unknown_metrics", "labels_that_say_which_engine_it_is",
}  # fmt: skip
LINES_MAX, FORMS_MAX = 25, 5  # of a case
SEVERAL_FACTS = {  # of a line, or of several lines, of which one may be rejected
    *("gpu-table", "nccl-ras", "otel-spans", "slurm"),
}
OVER_LINES = {  # records of several lines, or of a header and a row, and others mixed with them
    "24_11_scontrol_node_many_lines": "scontrol_nodes_of_every_form",
    "scontrol_nodes_of_every_form": "24_11_scontrol_node_many_lines",
    "json_in_the_hour_that_comes_twice": "json_nodes_say_when_they_were_so",
    "sacct_where_no_row_names_gpus": "24_11_sacct_iso_offset_while_jobs_run",
}
RECORD_START = re.compile(r"\n+(?=NodeName=|Cluster\||\{\"nodes\")")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")
STEP_0 = re.compile(r"(?:step[:=]|'epoch': ')\s*0*\.?0*\b(?![.\d])")  # nothing is finished yet
NEW = ("", "", " ", "x", "7", "12.5/13.0", "123456789012345678")


def lines_of(case):
    """Return the lines of a case that tell what they are, by number from 0."""
    path, telling = input_of(case), TELLING[name_of(case)]
    if path.suffix in (".json", ".pkl") or case.name in REPEATING:
        return []
    lines = path.read_text("utf-8", "replace").split("\n")
    return [(case, number) for number, line in enumerate(lines) if re.search(telling, line)]


def format_of(case, number):
    """Return the source of a line, of a job's log with its format."""
    if (source := name_of(case)) != "job-log":
        return source
    line = input_of(case).read_text("utf-8", "replace").split("\n")[number]
    return f"job-log {next(name for name, form in OF_FORMATS.items() if re.search(form, line))}"


LINES = {}
for case in CASES:
    for found in lines_of(case) if name_of(case) in TELLING else ():
        LINES.setdefault(format_of(*found), []).append(found)


def names_of(line, telling):
    """Return the names in a line, of JSON all keys; None where no format names it."""
    found = re.search(telling, line)
    keys = re.findall(r'"([^"]*)" ?:', line) if '{"' in line and '":' in line else []
    return None if found is None else (*found.groups(), *keys)


def batches_of(source, path, lines, options):
    """Return what a file with these lines gives; or the sentence with which it is refused."""
    path.write_text("\n".join(lines), "utf-8", "surrogateescape")
    try:
        return list(sources()[source](path, options).extract())
    except IngestError as error:
        return str(error)


def outcome(source, path, lines, options):
    """Return rows and rejects of a file with these lines, however often; or why it is refused."""
    batches = batches_of(source, path, lines, options)
    return batches if isinstance(batches, str) else counted(batches)


def counted(batches):
    rows, rejects = Counter(), Counter()
    for batch in batches:
        rows.update((batch.table, repr(row)) for row in batch.rows.rows())
        rejects.update((re.sub(r"\d+", "0", r.reason), r.content) for r in batch.rejects)
    return rows, rejects


@pytest.mark.usefixtures("all_packages")
def test_every_format_is_counted_or_one_document():
    assert {*TELLING} | DOCUMENTS == {*sources()}
    assert not {*TELLING} & DOCUMENTS
    of_logs = {f"job-log {form.name}" for form in formats()}
    assert {f"job-log {name}" for name in OF_FORMATS} == of_logs
    assert {*LINES} == {*TELLING} - {"job-log"} | of_logs


def altered(count):
    """Make the test of so many altered lines: a failure is of this revision, not of chance."""
    shared_folder = [HealthCheck.function_scoped_fixture]

    @pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
    @settings(max_examples=count, derandomize=True, suppress_health_check=shared_folder)
    @given(data=st.data())
    def test(lines, data, tmp_path):
        alter_a_line(lines, data, tmp_path)

    return test


test_a_line_that_bears_a_fact_is_read_or_rejected = altered(5)
test_of_many_altered_lines_none_is_lost = pytest.mark.slow(altered(200))


def alter_a_line(lines, data, tmp_path):
    """Alter a line; fail where the file then gives what it gives without the line."""
    case, number = data.draw(st.sampled_from(lines))
    name = name_of(case)
    path = tmp_path / case.parent.name / case.name / input_of(case).name
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = input_of(case).read_text("utf-8", "surrogateescape").split("\n")
    before, line, after = whole[:number], whole[number], whole[number + 1 :]
    options = options_of(case)
    begin = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(begin, min(begin + 12, len(line))))
    altered = line[:begin] + data.draw(st.sampled_from(NEW)) + line[end:]
    told = names_of(line, TELLING[name])
    is_same_kind = names_of(altered, TELLING[name]) == told
    is_silent = re.search(SILENT.get(name, "$^"), altered)
    if not altered.strip(", \t") or not is_same_kind or STEP_0.search(altered) or is_silent:
        return
    found = outcome(name, path, [*before, altered, *after], options)
    if isinstance(found, str) or found != (without := outcome(name, path, before + after, options)):
        return

    assert outcome(name, path, whole, options) == without, "no fact was in it"


TEXTS = [
    case
    for source in sources()
    if source not in DOCUMENTS
    for case in CASES
    if name_of(case) == source and case.name not in REPEATING
]


@of_cases(TEXTS)
def test_lines_in_are_rows_rejects_and_lines_known_to_say_nothing(tmp_path, case):
    """A line gives rows where the file gives others without it; rejects name their line."""
    source, path, options = name_of(case), tmp_path / input_of(case).name, options_of(case)
    lines = input_of(case).read_text("utf-8", "surrogateescape").splitlines()[:LINES_MAX]
    batches = batches_of(source, path, lines, options)
    if isinstance(batches, str):
        return  # refused as a whole, in a sentence
    whole = counted(batches)
    rejected = {reject.line for batch in batches for reject in batch.rejects}
    to_give_rows = {  # a line a form: of lines that differ in their numbers the last
        re.sub(r"\d+", "0", line): (number, line)
        for number, line in enumerate(lines, start=1)
        if number not in rejected
        and re.search(TELLING[source], line)
        and not re.search(SILENT.get(source, "$^"), line)
    }

    some = [*to_give_rows.values()][:: len(to_give_rows) // FORMS_MAX + 1]
    lost = [
        line
        for number, line in some
        if outcome(source, path, [*lines[: number - 1], "", *lines[number:]], options) == whole
    ]

    assert lost == []


def facts_of(source, path, lines, options):
    """Return rows of a file with these lines, of a job's log without amounts; its rejects."""
    path.write_text("\n".join(lines), "utf-8", "surrogateescape")
    rows, rejects = Counter(), []
    with contextlib.suppress(IngestError):  # the file is refused as a whole
        for batch in sources()[source](path, options).extract():
            of_log = source == "job-log"
            found = batch.rows.select("event", "step", "kind") if of_log else batch.rows
            rows.update((batch.table, repr(row)) for row in found.rows())
            rejects += [reject for reject in batch.rejects if reject.line is not None]
    return rows, rejects


def records_in(case, over_lines):
    """Return the records of a case, of one line but where they go over lines."""
    text = input_of(case).read_text("utf-8", "surrogateescape")
    return (RECORD_START.split(text.strip()) if over_lines else text.splitlines())[:LINES_MAX]


def forms_of(case):
    """Return records of two files in one, without their times or twice; no two alike."""
    alike = [one for one in TEXTS if name_of(one) == name_of(case)]
    next_one = alike[(alike.index(case) + 1) % len(alike)]
    is_over_lines = case.name in OVER_LINES
    other = case.with_name(OVER_LINES[case.name]) if is_over_lines else next_one
    lines, others = (records_in(one, is_over_lines) for one in (case, other))
    forms = (
        lines, [TIME.sub("", line) for line in lines],
        [TIME.sub("", line) if n % 2 else line for n, line in enumerate(lines)],
        [line for line in lines for _ in "12"], lines[::-1],
        [line for pair in zip_longest(lines, others) for line in pair if line is not None],
    )  # fmt: skip
    return dict.fromkeys(map(tuple, forms))  # without times, some forms are one


def facts_with_rejects(case, tmp_path):
    """Yield a form with rejects, its rows and rejects, and its rows without rejected lines."""
    source, path, options = name_of(case), tmp_path / input_of(case).name, options_of(case)
    for form in forms_of(case):
        rows, rejects = facts_of(source, path, form, options)
        of_lines = [n for n, record in enumerate(form) for _ in record.split("\n")]
        # of JSON a reject has the number of its record
        if rejected := {of_lines[min(reject.line, len(of_lines)) - 1] for reject in rejects}:
            read = ["" if n in rejected else record for n, record in enumerate(form)]
            yield form, rows, rejects, facts_of(source, path, read, options)[0]


@of_cases(case for case in TEXTS if name_of(case) not in SEVERAL_FACTS)
def test_a_rejected_line_is_rejected_once_and_gives_no_rows(tmp_path, case):
    """However lines of two files come in one, lack their times or come again."""
    for form, rows, rejects, rows_of_rest in facts_with_rejects(case, tmp_path):
        assert len(rejects) == len({reject.line for reject in rejects}), form
        assert rows_of_rest >= rows, form


@of_cases(case for case in TEXTS if name_of(case) in SEVERAL_FACTS)
def test_of_a_line_with_several_facts_each_is_rejected_once_and_takes_no_other_away(tmp_path, case):
    """Rows of all other lines stay, in the same forms as above."""
    for form, rows, rejects, rows_of_rest in facts_with_rejects(case, tmp_path):
        named = Counter((reject.line, reject.reason, reject.content) for reject in rejects)
        assert max(named.values()) == 1, form
        assert rows_of_rest <= rows, form


@pytest.mark.parametrize("name", OVER_LINES)
def test_each_record_over_lines_gives_rows_or_is_rejected(name, tmp_path):
    """Records in = rows + rejects + records known to say nothing, in the same forms."""
    case = next(one for one in TEXTS if one.name == name)
    path = tmp_path / input_of(case).name
    for form in forms_of(case):
        whole = outcome("slurm", path, form, options_of(case))
        for number in range(len(form)):
            rest = (*form[:number], *form[number + 1 :])
            assert outcome("slurm", path, rest, options_of(case)) != whole, (form[number], form)
