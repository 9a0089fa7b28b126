"""Training of a model in PyTorch: optimizers, schedules, data, mixed precision, processes."""
