"""Files that a site writes: inventory, rates, tariffs, budgets, power feeds, telemetry exports."""
