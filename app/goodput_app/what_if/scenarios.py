"""All scenarios by name, in the order in which they are offered."""

from __future__ import annotations

from goodput_app.what_if.checkpoints import CHECKPOINTS
from goodput_app.what_if.halving import HALVING
from goodput_app.what_if.power_cap import POWER_CAP
from goodput_app.what_if.prices import PRICES
from goodput_app.what_if.upgrade import UPGRADE

SCENARIOS = {one.name: one for one in (UPGRADE, HALVING, CHECKPOINTS, POWER_CAP, PRICES)}
