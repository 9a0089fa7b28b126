"""Names that have the right values in graphs: tests compare each with its library."""

from __future__ import annotations

from hagane.frontends.libraries.chainer.meant import MEANT as CHAINERS
from hagane.frontends.libraries.einops import COMPOSED as EINOPS
from hagane.frontends.libraries.names import meant
from hagane.frontends.libraries.names.additions import MEANT as ADDITIONS
from hagane.frontends.libraries.numpy.composing import COMPOSED
from hagane.frontends.libraries.torch.composing import COMPOSED as TORCHS
from hagane.frontends.libraries.torch.jacobians import FUNCTIONAL

# Operators that other packages add to PyTorch, and functions that return no tensor: tests of their
# own compare them with their definition.
_ADDED = frozenset(
    ("torch.ops.torchvision.nms", "torch.ops.torchvision.roi_align", "numpy.fill_diagonal",
     "numpy.copyto", "numpy.ndarray.fill", "torch.Tensor.fill_diagonal_",
     "torch.autograd.grad", "torch.Tensor.requires_grad_", "torch.linalg.solve_ex",
     "torch._subclasses.fake_tensor.is_fake", "torch.autograd.forward_ad.unpack_dual",
     "torch.fx.experimental.proxy_tensor.get_proxy_mode", "torch.is_inference_mode_enabled",
     "torch.distributed.is_available", "torch.distributed.is_initialized",
     "torch.Tensor.requires_grad", "torch.Tensor.grad", "torch.spmm", "torch.sparse.mm",
     *(f"torch.autocast.{name}" for name in ("__enter__", "__exit__", "__call__")),
     *(f"torch.nn.Module.register_forward_{kind}hook" for kind in ("", "pre_")),
     *(f"torch.utils.hooks.RemovableHandle.{name}" for name in ("remove", "__enter__", "__exit__")),
     *(f"torch.nn.{name}.flatten_parameters" for name in ("RNN", "GRU", "LSTM")),
     "torch.Tensor.__reversed__", "torch.nn.utils.rnn.pack_padded_sequence",
     "torch.nn.utils.rnn.pad_packed_sequence", "torch.Tensor.register_hook",
     *(f"torch.func.{name}" for name in (
         "functional_call", "vmap", "<vmap>", "grad", "grad_and_value", "<grad>",
         "<grad_and_value>", "vjp", "jvp", "jacrev", "<jacrev>", "jacfwd", "<jacfwd>", "hessian",
         "<hessian>")), *(f"torch.autograd.functional.{name}" for name in FUNCTIONAL),
     "torch.utils.checkpoint.checkpoint_sequential", "torch.vmap", "numpy.ndarray.sort",
     "numpy.ndarray.partition", "numpy.ndarray.is_integer", "numpy.ndarray.__float__",
     "numpy.ndarray.__int__", "torch.Tensor.__float__", "torch.Tensor.__int__",
     *(f"torch.distributions.Distribution.{name}" for name in (
         "log_prob", "cdf", "entropy", "mean", "variance", "stddev", "mode",
         "covariance_matrix", "_validate_args")), "torch.distributions.kl_divergence",
     *(f"torch.distributions.transforms.Transform.{name}" for name in (
         "__call__", "log_abs_det_jacobian", "inv")),
     *(f"numpy.{name}.at" for name in ("add", "subtract", "multiply", "maximum", "minimum")))
)  # fmt: skip
MEANT = meant.MEANT | CHAINERS | ADDITIONS | _ADDED | COMPOSED | TORCHS | EINOPS

__all__ = ["MEANT"]
