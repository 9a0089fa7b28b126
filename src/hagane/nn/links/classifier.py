"""A model with its loss."""

from __future__ import annotations

from typing import Any

from hagane.nn import functions as F
from hagane.nn import reporter
from hagane.nn.model.chain import Chain


class Classifier(Chain):
    """A predictor with loss and accuracy, which it reports.

    Args:
        predictor: The model.
        lossfun: Returns the loss of prediction and labels.
        accfun: Returns the accuracy of these.
        label_key: Which argument holds the labels: a place or a name.

    Attributes:
        y: The last prediction.
        loss: Its loss.
        accuracy: Its accuracy.
        compute_accuracy: Whether the accuracy is computed.
    """

    compute_accuracy = True

    def __init__(
        self,
        predictor: Any,
        lossfun: Any = F.softmax_cross_entropy,
        accfun: Any = F.accuracy,
        label_key: Any = -1,
    ):
        if not isinstance(label_key, int | str):
            raise TypeError(f"label_key must be int or str, but is {type(label_key)}")
        super().__init__()
        self.lossfun = lossfun
        self.accfun = accfun
        self.y: Any = None
        self.loss: Any = None
        self.accuracy: Any = None
        self.label_key = label_key
        with self.init_scope():
            self.predictor = predictor

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the loss.

        Raises:
            ValueError: There are no labels where ``label_key`` says.
        """
        key = self.label_key
        if isinstance(key, int):
            if not -len(args) <= key < len(args):
                named = f", and {sorted(kwargs)} by name: give label_key" if kwargs else ""
                raise ValueError(
                    f"Label key {key} is out of bounds: there are {len(args)} inputs{named}"
                )
            rest = list(args)
            t = rest.pop(key)
            args = tuple(rest)
        else:
            if key not in kwargs:
                raise ValueError(f'Label key "{key}" is not found among {sorted(kwargs)}')
            t = kwargs.pop(key)
        self.y = self.loss = self.accuracy = None
        try:
            self.y = self.predictor(*args, **kwargs)
        except TypeError as error:
            if not args and not kwargs:
                error.add_note(
                    f"{type(self).__name__}: its one argument was taken for the labels "
                    f"(label_key={key}); without labels call its predictor"
                )
            raise
        self.loss = self.lossfun(self.y, t)
        reporter.report({"loss": self.loss}, self)
        if self.compute_accuracy:
            self.accuracy = self.accfun(self.y, t)
            reporter.report({"accuracy": self.accuracy}, self)
        return self.loss
