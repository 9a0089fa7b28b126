"""The compiled step of a link of hagane."""
