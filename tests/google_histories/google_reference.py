"""What ml-goodput-measurement makes of event files; run by a Python that has the package.

Prints a JSON list: for each file named on the command line its productive seconds.
"""

import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from ml_goodput_measurement.src.goodput import GoodputCalculator


class _FileLogger:
    """Stands in for Cloud Logging: all entries of the file."""

    def __init__(self, entries):
        self.entries = entries
        self.job_start_time = None

    def read_cloud_logging_entries(self, *_, **__):
        return self.entries, (datetime.now(UTC), "last")


def productive_s(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    entries = [row for row in rows if "job_name" in row]
    calculator = GoodputCalculator(
        entries[0]["job_name"], "log", cloud_logger=_FileLogger(entries),
        cache_dir=tempfile.mkdtemp(),
    )  # fmt: skip
    calculator.get_job_goodput()
    return float(calculator._goodput_cache.get_goodput_info().total_productive_time)


if __name__ == "__main__":
    sys.stdout.write(json.dumps([productive_s(Path(name)) for name in sys.argv[1:]]))
