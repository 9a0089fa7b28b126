"""A folder whose ``chainer`` is hagane: for the path of processes that a script starts."""
