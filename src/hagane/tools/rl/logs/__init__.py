"""Logs of rollouts in a folder, as ChainerRL Visualizer lays it out."""
