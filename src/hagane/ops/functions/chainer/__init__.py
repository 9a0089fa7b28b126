"""Functions of Chainer over the builder: for `nn`, the checker and capture."""
