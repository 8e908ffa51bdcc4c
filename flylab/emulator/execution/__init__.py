"""Running: waves, workgroups, those that wait for each other, and the errors of a launch."""
