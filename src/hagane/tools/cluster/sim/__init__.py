"""The simulation: time, the life of pods, the rights of submitters and schedulers."""
