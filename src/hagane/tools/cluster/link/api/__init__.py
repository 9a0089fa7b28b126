"""The API server: requests of schedulers, informers and kubectl, and its description of itself."""
