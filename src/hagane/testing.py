"""Tables, comparisons and checks for tests, under the names of Chainer."""

from hagane.nn import testing as _of_links
from hagane.nn.testing import *  # noqa: F403
from hagane.training.mocked import get_trainer_with_mock_updater

__all__ = [*_of_links.__all__, "get_trainer_with_mock_updater"]
