"""`goodput epilog`: a job's report at the end of its output, from a scheduler's epilog."""

import logging
import os
import sys
import threading
from urllib.parse import quote

import click

from goodput_app.cli.options import database_option

log = logging.getLogger(__name__)

WITHIN_S = 1.8  # the interpreter takes the rest of two seconds to start
TOKEN_VARIABLE = "GOODPUT_TOKEN"  # noqa: S105 -- the name of a variable


def job_of_environment() -> str | None:
    """Return the number of the Slurm job that this process belongs to; of an array 17_3."""
    array, task = (os.environ.get(f"SLURM_ARRAY_{name}_ID") for name in ("JOB", "TASK"))
    return f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID")


@click.command()
@click.argument("job", required=False)
@database_option
@click.option(
    "--url",
    envvar="GOODPUT_URL",
    metavar="URL",
    help=f"Server to ask instead, with the token in ${TOKEN_VARIABLE}; default: $GOODPUT_URL.",
)
@click.option("--cluster", metavar="NAME", help="Cluster, where several have such a job.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["paragraph", "table"]),
    default="paragraph",
    show_default=True,
)
@click.option(
    "--within",
    "within_s",
    type=click.FloatRange(min=0, max=3600, min_open=True),
    envvar="GOODPUT_EPILOG_WITHIN_S",
    default=WITHIN_S,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the report, also in $GOODPUT_EPILOG_WITHIN_S.",
)
def epilog(
    job: str | None, db: str, url: str | None, cluster: str | None, form: str, within_s: float
) -> None:
    """Write what a job came to: goodput, waste, why, what to change.

    JOB: its number; default: $SLURM_JOB_ID. It writes the report in time or nothing, and its exit
    code is 0 then, too: an epilog that fails drains its node. `goodput --debug` says why.
    """
    job = job or job_of_environment()
    if not job:
        raise click.UsageError("no job: name its number, or set SLURM_JOB_ID.")
    written: list[str] = []
    arguments = (job, url, db, cluster, form, within_s)
    asking = threading.Thread(target=lambda: written.append(_report(*arguments)), daemon=True)
    asking.start()
    asking.join(within_s)
    click.echo("".join(written), nl=False)
    if asking.is_alive():
        log.debug("no report within %s s", within_s)
        sys.stdout.flush()
        os._exit(0)  # a query that runs on would keep the process


def _report(
    job: str, url: str | None, db: str, cluster: str | None, form: str, within_s: float
) -> str:
    """Return the report; empty where there is none, whatever the reason."""
    try:
        if url:
            return _of_server(job, url, cluster, form, within_s)
        return _of_database(job, db, cluster, form)
    except Exception as error:
        log.debug("no report: %s", error)
        return ""


def _of_server(job: str, url: str, cluster: str | None, form: str, within_s: float) -> str:
    import httpx  # noqa: PLC0415 -- most of the start of this command

    token = os.environ.get(TOKEN_VARIABLE)
    answer = httpx.get(
        f"{url.rstrip('/')}/run/{quote(job)}",
        params={"format": form} | ({"cluster": cluster} if cluster else {}),
        headers={"Accept": "text/plain"} | ({"Authorization": f"Bearer {token}"} if token else {}),
        timeout=within_s,
    )
    answer.raise_for_status()
    return answer.text


def _of_database(job: str, db: str, cluster: str | None, form: str) -> str:
    from goodput_app.cli.database import existing  # noqa: PLC0415 -- as above
    from goodput_app.job_report import job_report  # noqa: PLC0415 -- as above
    from goodput_app.settings import settings  # noqa: PLC0415 -- as above

    with existing(db) as store:
        return job_report(store, job, settings().public_url, cluster).text(form)
