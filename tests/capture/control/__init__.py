"""Programs with control flow as their authors write them, in NumPy's style and in PyTorch's.

Each is listed with the types of its arguments and with inputs that run every line of it.
"""
