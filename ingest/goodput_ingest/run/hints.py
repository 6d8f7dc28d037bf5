"""Files that people have and no source reads: what they are and what would be read instead."""

import re
from typing import Final

from goodput_ingest.formats import syslog
from goodput_ingest.sources.job_logs.formats import looks_like_step
from goodput_ingest.sources.job_logs.profile_draft import has_steps
from goodput_ingest.sources.slurm.fields import COMMAND

EVENTS: Final = "job events are read (goodput_emitter.py, see docs/job-events.md)"
QUERY: Final = (
    "`nvidia-smi --query-gpu=timestamp,uuid,utilization.gpu,power.draw,memory.used --format=csv "
    "-l 10`"
)
KNOWN: Final = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (
            rb"\| NVIDIA-SMI \d|=NVSMI LOG=|\A# ?(?:Date +Time +)?gpu[ ,]+pid\b"
            rb"|\AGPU \d{1,3}: [^\n]* \(UUID: |\A(?:\w+, )*(?:pid, |process_name, )",
            f"this output of nvidia-smi is not read. {QUERY} is",
        ),
        (
            rb"\A[A-Z][a-z]{2} [^\n]*\b20\d\d\b[^\n]*\n(?:\d+, )?\d+ (?:%|MiB|W|MHz)[,\r\n]",
            f"rows of nvidia-smi without a header (noheader) are not read. {QUERY} is",
        ),
        (rb'(?s)"query_time".*"utilization\.gpu"', f"gpustat is not read. {QUERY} is"),
        (rb"\A,resources/[^\n]*cuda:", f"the CSV of nvitop is not read. {QUERY} is"),
        (rb'\A\[\s*\{\s*"device_name":[^}]*"gpu_util":', f"nvtop is not read. {QUERY} is"),
        (
            rb"ROCm System Management Interface|\Adevice,[^\n]*GPU use"
            rb"|\A(?:timestamp,)?gpu,[^\n]*(?:gfx_|socket_power)"
            rb'|\A\{"card\d+": ?\{|\A\[\s*\{\s*"gpu": ?\d+,\s*"',
            "rocm-smi and amd-smi are not read. Scrapes of AMD's exporter are (source dcgm)",
        ),
        (
            rb"\A\+-+\+-+\+\r?\n\| Diagnostic ",
            "this output of dcgmi is not read. `dcgmi diag -j` is (source node-tests)",
        ),
        (
            rb'\A"Time",',
            "a panel's CSV of Grafana is not read. Answers of Prometheus are, to "
            "/api/v1/query?query=METRIC[1h] (source prometheus)",
        ),
        (
            rb"\A\w*\{[^\n]*\} =>(?: \d|\n\S+ @\[)",
            "this output of promtool is not read. `promtool query range -o json` is (source "
            "prometheus)",
        ),
        (
            rb"\A(?:#[^\n]*\n)*cgroup_\w+\{[^\n]*\bjobid=",
            f"cgroup_exporter has no GPUs and is not read. `{COMMAND}` is, and scrapes of GPU "
            "exporters (source dcgm)",
        ),
        (
            rb"\A# (?:HELP|TYPE) [A-Za-z_:]"
            rb"|\A[a-z_:][\w:]*(?:\{\w+=\"[^\n]*\}| ) *[-+\d.eE]+(?: \d{10,13})?\r?\n",
            'a scrape of an exporter that is not read. Those that are: the table "Sources" in '
            "docs/connect.md",
        ),
        (
            rb'\A"Step","[^"\n]* - ',
            "the CSV of a chart of W&B has no times and is not read. `run.history().to_csv()` is, "
            "and wandb-history.jsonl (source wandb-history)",
        ),
        (
            rb'\A\{(?=[^\0]*"startedAt": ?")(?=[^\0]*"program": ?")|"system\.(?:gpu|cpu)\b'
            rb'|\A\{"time":"[^"\n]*","level":"\w+","msg":"(?:wandb-core|main: starting server)"',
            "this file of a run of W&B has no steps. Its wandb-history.jsonl and run-ID.wandb do "
            "(source wandb-history)",
        ),
        (
            rb'\A\{"trial": ?\{|\A\{"\w+": ?\{"\w+": ?\{"name": ?"[^"\n]*", ?"x": ?\[',
            "what Determined and ClearML export is not read. The job's log is, and what it logged "
            "to TensorBoard, MLflow or W&B",
        ),
        (
            rb"\A\"?Start Time\"?,\"?Duration\"?,\"?Run ID|\Arun_id,experiment_id,status,",
            "a list of runs of MLflow is not read. Its folder mlruns is (source mlflow)",
        ),
        (
            rb'\A\s*\{\s*"resource(?:Metrics|Logs|Spans)":',
            "files of OpenTelemetry are not read. Metrics that are sent to [receive] are, see "
            '"Receive metrics" in docs/connect.md',
        ),
        (
            rb'\A[\w "/.-]+(?:;[][%\w "/.-]*){2,}\r?\n',
            "cells between semicolons are not read. CSV is, with commas between cells and a point "
            "in numbers",
        ),
        (
            rb"\A(?=[^\n]*\bepoch\b)(?=[^\n]*(?:\bstep\b|loss))[\w/.-]+(?:,[\w/.@ -]+)+\r?\n",
            "a table of steps or epochs without times is not read. The job's log is, and what it "
            "logged to TensorBoard, MLflow or W&B",
        ),
        (
            rb"\AWall time,Step,Value\r?\n|\A\[\[\d+\.\d+, \d+, ",
            "scalars that TensorBoard exports are not read. The folder of its event files is "
            "(source tensorboard)",
        ),
        (
            rb'(?s)\A\{.*"log_history": ?\[',
            "trainer_state.json has no times and is not read. The output of the Trainer is, with a "
            "time before each line (source job-log), and hf_callback() of goodput_emitter.py",
        ),
        (
            rb"\APAR1",
            "Parquet with these columns is not read. Of W&B `run.history().to_csv()` is (source "
            "wandb-history)",
        ),
        (
            rb"\A\[20[\d-]{8}T[\d:.]+\] (?:[a-z]+: )?[^\n]*\bJobId=\d",
            f"slurmctld.log is not read. `{COMMAND}` is",
        ),
        (
            rb"\A *JobID(?:Raw)? [^|\n]*\n[- ]+\n",
            f"sacct cuts columns of this form, which is not read. `{COMMAND}` is",
        ),
        (
            rb"\A *JOBID(?: +PARTITION +NAME |[|,](?:[A-Z_()]+[|,])*[A-Z_()]+\r?\n)",
            "this output of squeue is not read. `squeue -a --json` and `scontrol show job -d` are",
        ),
        (
            rb"\A(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d:]+\n)? *(?:PARTITION +AVAIL|NODELIST +NODES) ",
            "this output of sinfo is not read. `sinfo -N -a -o '%N|%P|%T|%G|%C|%m|%E|%H|%u'` is, "
            "with `--observed-at`",
        ),
        (
            rb"\A *(?:NAMESPACE +)?(?:NAME +(?:READY +)?STATUS +(?:RESTARTS|ROLES) |LAST SEEN )"
            rb"|\AName: +\S+\r?\n(?:Namespace|Roles): |\AapiVersion: ",
            "this output of kubectl is not read. kube-state-metrics in Prometheus and `kubectl get "
            "... -o json` are (source kubernetes)",
        ),
        (
            rb"\A(?:__CURSOR=|\[\s*\{\s*\"__|\{\s*\"dmesg\":)"
            rb"|\A[A-Z][a-z]{2} 20[\d-]{8} [\d:.]+ [A-Z]{3,5} "
            rb"|\A\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]+ [AP]M |\bNVRM: (?:Xid|GPU) ",
            "this form of a kernel log is not read. `journalctl -k -o short-iso-precise` and "
            "`journalctl -k -o json` are (source kernel-log)",
        ),
        (
            rb"\A *JOBID +USER +STAT +QUEUE |\A *Job [iI][dD] +(?:Name|User|Username) ",
            f"LSF and PBS are not read. `goodput run COMMAND` records a job, and {EVENTS}",
        ),
        (
            rb'(?s)\A\[\s*\{"name": ?"[^"]*", ?"cat": ?"(?:GROUP|COLL|P2P|PROXY|KERNEL_LAUNCH|NET)'
            rb'|\A\[?\s*\{[^\n]{0,2000}"child_dur": ?[^\n]{0,500}"comm_hash": ?',
            "dumps of NCCL's example profiler and of CoMMA have no time of a common clock, and are "
            "not read. NCCL's Inspector is (source nccl-inspector)",
        ),
        (
            rb'"current_steps": ?\d+, "total_steps": ?\d+',
            "trainer_log.jsonl of LLaMA-Factory is not read. The output of its Trainer is, with a "
            "time before each line (source job-log), and hf_callback() of goodput_emitter.py",
        ),
    )
)


def hint_of(head: bytes) -> str:
    """Return what would be read instead of a file, by its first bytes; empty: nothing is known."""
    for pattern, sentence in KNOWN:
        if pattern.search(head):
            return f"{sentence}."
    if b"\x00" in head:
        return ""
    lines = head.decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines, 1):
        if looks_like_step(line):
            shown = line.strip()[: syslog.HEAD_LINE_MAX_CHARS // 5]
            return (
                f"line {number} ({shown}) looks like a training step of no known format; "
                "`goodput profile draft` proposes a profile for such lines."
            )
    if has_steps(lines):
        return (
            "a number rises from line to line, as in the log of a job; if it is one, "
            "`goodput profile draft` proposes a profile for it."
        )
    return ""
