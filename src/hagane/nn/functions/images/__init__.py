"""Functions whose windows slide over images: convolutions, pooling, regions, sampling."""
