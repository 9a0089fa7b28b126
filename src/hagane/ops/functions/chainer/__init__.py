"""Functions of Chainer over the builder: what `nn` computes, the checker types, capture writes."""
