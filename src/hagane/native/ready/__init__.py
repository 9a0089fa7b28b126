"""Compiled parts that are ready to run: code that is mapped, tables in memory. It loads little else."""
