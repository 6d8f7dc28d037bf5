"""How many processes a job has, as its log prints it: where nothing else says, a GPU is each one's.

`using world size: 64`, `MEMBER: 1/64`, `All distributed processes registered. Starting with 8
processes`, `Num processes: 8`, `training on 8 devices (GPUs/TPUs)` of fairseq, `GPU number: 8` of
mmengine, `Num_devices: 8, shape` of MaxText, the mesh of torchtitan (`2-D device mesh with [...],
[2, 8]`, `pp=1, dp_replicate=2, dp_shard=8, cp=1, tp=1`); else processes of a node times nodes, as
torchrun and verl print them, or the batch of the Hugging Face Trainer over that of a device.
"""

import math
import re
from typing import Final

WORLD_SIZE: Final = "world_size"  # kind of the event
PROCESSES_MAX: Final = 200_000
HINTS: Final = (  # a line with a number has one of these; they begin with what is rare in logs
    *("world size", "world_size", "World size", "World Size", "WORLD_SIZE", "MEMBER: "),
    *(
        "Starting with ",
        "Num processes: ",
        "1 device per process",
        "_per_node",
        "_nodes",
        "'nnodes",
        "training on ",
        "GPU number: ",
        "Num_devices: ",
        "device mesh with ",
    ),
    *("Total train batch size", "Instantaneous batch size", "Gradient Accumulation"),
)
HINT: Final = re.compile("|".join(HINTS))
COUNT: Final = re.compile(r"\d+")
NUMBERS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "size",
            r"(?i:(?<![\w.])(?<!local )(?:global_|dist_)?world[ _]?sizes?['\"]?"
            r"[ :=.]{1,60}\[?(\d{1,6})\b)",
        ),
        ("size", r"world_size_(\d{1,6})_rank_\d"),
        ("size", r"\bMEMBER: \d{1,6}/(\d{1,6})\b"),
        ("size", r"\bdistributed processes registered\. Starting with (\d{1,6}) processes"),
        ("size", r"^Num processes: (\d{1,6})\s*$"),
        ("size", r"\btraining on (\d{1,6}) (?:devices \(GPUs/TPUs\)|GPUs)"),
        ("size", r"^ *GPU number: (\d{1,6})\s*$"),
        ("size", r"\bNum_devices: (\d{1,6}), shape "),
        ("size", r"\bBuilding \d-D device mesh with \[[^\]]{0,99}\], \[([\d, ]{1,60})\]"),
        (
            "size",
            r"\bdevice mesh with parallelism: "
            r"(pp=\d{1,5}, dp_replicate=\d{1,5}, dp_shard=\d{1,5}, cp=\d{1,5}(?:, tp=\d{1,5})?)",
        ),
        ("size", r"\bProcess \d{1,6}, total (\d{1,6}), device\b"),
        ("per_node", r"\b(?:nproc|n_gpus)_per_node['\"]?\s{0,20}[:=]\s?(\d{1,3})\b"),
        ("nodes", r"\b(?:min_nodes|nnodes)['\"]?\s{0,20}[:=]\s?(\d{1,5})\b"),
        ("batch", r"\bTotal train batch size \(w\. parallel, [^)]{1,60}\) = ([\d,]{1,15})\s*$"),
        ("of_device", r"\bInstantaneous batch size per device = ([\d,]{1,15})\s*$"),
        ("accumulated", r"\bGradient Accumulation steps = ([\d,]{1,15})\s*$"),
    )
)


class WorldSize:
    """What the lines of a log say of the number of processes since the last life began."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.numbers: dict[str, int] = {}
        self.reported = 1

    def take(self, text: str) -> None:
        """Keep the numbers in a line; of several sizes the largest is the job's."""
        for name, pattern in NUMBERS if HINT.search(text) else ():
            if (found := pattern.search(text)) is not None:
                number = math.prod(map(int, COUNT.findall(found[1].replace(",", ""))))
                self.numbers[name] = max(number, self.numbers.get("size", 0) * (name == "size"))

    def begin(self) -> None:
        """Take note that a life begins."""
        self.reported = 1

    def news(self) -> int | None:
        """Return the number of processes where it is not known yet."""
        said = self.numbers
        sizes = [said.get("size", 0), said.get("per_node", 0) * said.get("nodes", 0)]
        device = said.get("of_device", 0) * said.get("accumulated", 0)
        if device and said.get("batch", 0) % device == 0:
            sizes.append(said["batch"] // device)
        if not self.reported < (size := max(sizes)) <= PROCESSES_MAX:
            return None
        self.numbers, self.reported = {}, size
        return size
