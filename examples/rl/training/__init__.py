"""Small trainers in PyTorch, one file a family."""
