"""Make the weeks of the demo again: `python -m tests.demo_weeks sample_data/atlas [NUMBER]...`."""

import sys
from pathlib import Path

from tests.demo_weeks import weeks

from goodput_synthetic import demo

for number in map(int, sys.argv[2:] or range(len(weeks.PLANS))):
    world = weeks.week(number, gpus=demo.FLEET_GPUS, hours=weeks.WEEK_HOURS, end=demo.FLEET_START)
    weeks.write(Path(sys.argv[1]) / f"week-{number + 1}", world)
