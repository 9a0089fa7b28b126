"""Put hagane in the place of this module."""

import importlib

from hagane.nn.aliasing import install

install()  # which drops this module from the table of modules
importlib.import_module(__name__)
