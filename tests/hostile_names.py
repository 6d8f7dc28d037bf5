"""Names and log lines that try to be something else: loaded as they are, past the sources' checks.

Each is the name of a node, rack, GPU model, job, run, user and team, and the text of log lines.
"""

import itertools

from tests.queries.conftest import Evidence, at

LONG = "w" * 100_000
PAYLOADS = {
    "HTML": "<img src=x onerror=alert(1)><b>evil</b> &lt;i&gt;",
    "script": "</script><script>alert('evil')</script>",
    "Markdown link": "[evil](https://evil.test/a) <https://evil.test> [b]: https://evil.test",
    "bare address": "see https://evil.test/b, www.evil.test or eve@evil.test",
    "Markdown image": "![evil](https://evil.test/i.png) **evil** `evil`",
    "LaTeX": r"$\href{https://evil.test}{evil}$ $$e^{vil}$$ \(evil\)",
    "mermaid": "```mermaid\ngraph TD; evil-->evil\n```",
    "javascript URL": "javascript:alert(1) [evil](javascript:alert(1)) <javascript:alert(1)>",
    "right to left": "\u202efdp.live\u2066\u200f\u061c",
    "ANSI escape": "\x1b[31mevil\x1b[0m\x1b]8;;https://evil.test\x07evil\x1b]8;;\x07\x9b2J\x00",
    "long name": f"evil-{LONG}",
    "CSV formula": '=HYPERLINK("https://evil.test","evil")|cmd|\' /C calc\'!A0',
    "SQL quotes": "evil'; drop table raw.job_runs; -- \" ` \\",
    "template braces": "{{7*7}} ${7*7} {0} %(evil)s %{y} <%= 7 %> #{7}",
    "emoji shortcode": ":material/skull: :smile: :red[evil] :streamlit: -> evil",
    "nothing": "null",
    "not a number": "NaN",
    "path": "../../../../etc/passwd\\..\\evil",
}
SHORT = [text for kind, text in PAYLOADS.items() if kind != "long name"]
ALL_IN_ONE = " ".join(SHORT)
NAMES = (*PAYLOADS.values(), ALL_IN_ONE)


def load_hostile(store, names=NAMES):
    """Load a node, a job and a run of each name, half an hour each."""
    made = Evidence(store, _parts=itertools.count(1_000))  # beside other evidence of the cluster
    made.load("gpus", [
        {"cluster": "c", "node": name, "gpu_uuid": f"GPU-{name}", "slurm_index": 0, "gpu_index": 0,
         "gpu_model": name, "valid_from_at": at(0), "driver_version": name}
        for name in names
    ])  # fmt: skip
    made.load("nodes", [{"cluster": "c", "node": n, "partitions": [n], "gres": n} for n in names])
    made.load("node_racks", [
        {"cluster": "c", "node": n, "rack": n, "rack_row": n, "feed": n} for n in names
    ])  # fmt: skip
    made.load("job_runs", [
        {"cluster": "c", "job_id": f"{900 + number}", "job_id_raw": f"{900 + number}",
         "submit_at": at(0), "eligible_at": at(0), "start_at": at(60), "end_at": at(1_860),
         "state": "FAILED", "nodes": [name], "gpus": 1, "job_name": name, "account": name,
         "user_name": name, "partition": name, "qos": name, "reservation": name}
        for number, name in enumerate(names)
    ])  # fmt: skip
    made.load("job_events", [
        {"cluster": "c", "run_id": name, "attempt": 0, "rank": 0, "host": name,
         "gpu_uuid": f"GPU-{name}", "reports_durability": True, "ts": at(end), **event}
        for name in names
        for end, event in (
            *((120.0 + 10 * step, {"event": "step", "step": step, "dur_s": 10.0})
              for step in range(1, 7)),
            (600.0, {"event": "phase", "phase": f"custom:{name}", "dur_s": 200.0}),
            (1_850.0, {"event": "failure", "kind": "exception", "msg": name}),
        )
    ])  # fmt: skip
    made.load("gpu_events", [
        {"cluster": "c", "node": name, "gpu_uuid": f"GPU-{name}", "ts": at(1_800), "kind": "xid",
         "code": 79, "ts_precision": "exact", "process_name": name, "message": name}
        for name in names
    ], "kernel-log")  # fmt: skip
    made.load("gpu_samples", [
        {"gpu_uuid": f"GPU-{name}", "gpu_instance": "", "ts": at(second), "power_w": 90.0,
         "engine_active_ratio": 0.0, "sm_active_ratio": 0.0, "is_flagged": False}
        for name in names for second in range(0, 3_600, 120)
    ], "dcgm")  # fmt: skip
