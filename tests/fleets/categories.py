"""Codes of categories as integers, for arrays."""

CATEGORIES = (
    *("down", "maintenance", "drained", "powered_off", "reserved_idle", "stranded"),
    *("idle_with_demand", "idle_no_demand", "suspended", "startup", "restore", "checkpoint_save"),
    *("data_stall", "other_declared", "lost_work", "fault_stall", "failed_without_progress"),
    *("idle_held", "teardown", "throttled", "straggler_wait", "exposed_comm", "step_unsplit"),
    *("productive", "at_risk", "busy_unclassified", "unknown"),
    # not settled yet: what the readings of the GPU will say
    *("telemetry busy", "telemetry idle"),
)
CODE = {name: code for code, name in enumerate(CATEGORIES)}
TELEMETRY = (CODE["telemetry busy"], CODE["telemetry idle"])
