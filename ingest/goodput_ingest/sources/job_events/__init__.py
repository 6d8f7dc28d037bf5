"""Events that a training job writes: our own schema, Google's, OpenTelemetry spans."""
