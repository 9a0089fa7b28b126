"""Layers that oneDNN computes."""
