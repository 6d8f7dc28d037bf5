"""MLPerf submissions: training logs and node power."""
