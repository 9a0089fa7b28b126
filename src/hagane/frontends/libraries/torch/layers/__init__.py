"""Classes of ``torch.nn``."""
