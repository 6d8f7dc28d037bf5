"""All scenarios by name, in the order in which they are offered."""

from goodput_scenarios.checkpoints import CHECKPOINTS
from goodput_scenarios.feed import FEED
from goodput_scenarios.halving import HALVING
from goodput_scenarios.power_cap import POWER_CAP
from goodput_scenarios.upgrade import UPGRADE

SCENARIOS = {one.name: one for one in (HALVING, UPGRADE, CHECKPOINTS, POWER_CAP, FEED)}
