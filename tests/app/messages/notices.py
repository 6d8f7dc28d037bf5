"""Findings as notifications have them, for tests."""

import msgspec

from goodput_messages.message import Notice

AT_MS = 1_795_165_200_000  # 2026-11-20 09:00 UTC
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
PUBLIC_URL = "https://goodput.example.org"

HANG = Notice(
    finding_key="hang00000001", rule="hang", severity="page", title="A collective hangs",
    subject="main, n1", since_ms=AT_MS - 20 * MINUTE_MS,
    evidence="rank 3 of 16 did not join AllReduce 812",
    what_to_do="Look at the stack of the rank that is missing; restart the job", owner="team",
    cluster="lab", node="n1", run="main", team="research", user="ann", gpu_ms=19_200_000,
    url=f"{PUBLIC_URL}/findings?finding=hang00000001&from=2026-11-19T09%3A00%3A00Z",
)  # fmt: skip
IDLE = Notice(
    finding_key="idle00000001", rule="idle_allocation", severity="ticket",
    title="Allocated GPUs are idle", subject="tune (7)", since_ms=AT_MS - 40 * MINUTE_MS,
    evidence="10.7 GPU-h lost, 40.0 % of the allocated time",
    what_to_do="Release the GPUs, or end the session that holds them", owner="team", cluster="lab",
    run="tune (7)", team="research", user="ann", gpu_ms=38_400_000, idle_gpus=16,
    idle_since_ms=AT_MS - 40 * MINUTE_MS,
    url=f"{PUBLIC_URL}/findings?finding=idle00000001&from=2026-11-19T09%3A00%3A00Z",
)  # fmt: skip
DOWN = Notice(
    finding_key="down00000001", rule="node_down", severity="ticket", title="A node is down",
    subject="n2", since_ms=AT_MS - HOUR_MS, evidence="8.0 GPU-h lost, 12.5 % of the capacity",
    what_to_do="Repair or replace the node", is_cut=True, owner="operations", cluster="lab",
    node="n2",
)  # fmt: skip
HOSTILE = Notice(
    finding_key="evil00000001", rule="input_stall", severity="ticket", title="Steps wait for input",
    subject="<!channel> <b>*x*</b>\r\nBcc: all@example.org\x1b[31m [a](http://evil.example)",
    since_ms=AT_MS - HOUR_MS, evidence="</TextRun>&amp; `rm -rf /` <https://evil.example|click>",
    what_to_do="Prefetch or cache the input; add loader workers", owner="team", cluster="lab",
    run="<!channel> <b>*x*</b>", team='"; drop table x', user="eve",
)  # fmt: skip


def changed(notice, **values):
    """Return a finding with other values."""
    return msgspec.structs.replace(notice, **values)
