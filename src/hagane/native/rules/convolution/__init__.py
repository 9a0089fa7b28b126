"""Forms of convolution and pooling, and the choice between them."""
