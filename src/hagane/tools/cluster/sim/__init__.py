"""The simulation: time, the life of pods, what submitters and schedulers may do."""
