"""Names and log lines that try to be something else: loaded as they are, past the sources' checks.

Each is the name of a node, rack, GPU model, job, run, user and team, and the text of log lines.
"""

import itertools

from tests.queries.conftest import Evidence, phase, steps
from tests.queries.loaders import loaded_at_once

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
    beside = Evidence(store, _parts=itertools.count(1_000))  # other evidence of the cluster
    with loaded_at_once(beside) as made:
        for number, name in enumerate(names):
            gpu = f"GPU-{name}"
            made.listed(name, gpu, "test", slurm_index=0, gpu_model=name, driver_version=name)
            made.add("nodes", node=name, partitions=[name], gres=name)
            made.add("node_racks", node=name, rack=name, rack_row=name, feed=name)
            of_user = dict.fromkeys(("job_name", "account", "user_name", "partition", "qos"), name)
            made.job(f"{900 + number}", 60, 1_860, [name], 1, "FAILED", submit=0, **of_user,
                     reservation=name)  # fmt: skip
            failure = {"event": "failure", "kind": "exception", "msg": name, "t": 1_850}
            events = [*steps(1, 6, 120), phase(f"custom:{name}", 400, 600), failure]
            made.events(name, events, host=name, gpu_uuid=gpu)
            made.xid(name, 79, 1_800, gpu_uuid=gpu, process_name=name, message=name)
            made.readings(gpu, range(0, 3_600, 120), power_w=90.0, engine_active_ratio=0.0,
                          sm_active_ratio=0.0)  # fmt: skip
