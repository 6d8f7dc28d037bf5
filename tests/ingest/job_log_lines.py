"""Logs of jobs as their frameworks print them, and the events parsed from them."""

from zoneinfo import ZoneInfo

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

UTC = ReadOptions(zone=ZoneInfo("UTC"))
ITERATION = (
    " [2026-08-20 14:03:{second:02}.500000] iteration {step:8}/   50000 | consumed samples: 512 |"
    " elapsed time per iteration (ms): {ms} | lm loss: 7.1E+00 | \n"
)


def parsed(store, folder, text, options=UTC):
    """Return the events of a log, in time's order."""
    path = folder / "slurm-4711.out"
    path.write_text(text)
    ingest(store, "job-log", [path], options)
    return store.read(
        """select event, strftime(ts, '%H:%M:%S.%g') as at, step, round(dur_s, 3) as dur_s, phase,
            kind, msg, reports_durability, extra::varchar as extra
        from raw.job_events order by ts, event, step"""
    ).rows(named=True)
