"""Schedulers that are ready to use, beside the kube-scheduler."""
