"""The domain of `hagane check`: types and symbolic sizes."""
