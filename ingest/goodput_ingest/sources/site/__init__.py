"""Files that a site writes: inventory, rates, tariffs, budgets, telemetry exports."""
