"""Names of libraries of which only types are known, with the reason; capture tells it.

A name that ends in a dot stands for all names that begin with it. Names missing here and in
``meant.py`` have not been compared with its library yet.
"""

from __future__ import annotations

_DRAWN = "it draws random numbers, of which a graph has none; draw them outside and pass them in"
_COMPLEX = "it makes complex numbers, of which no formula over real ones is known for this form"
_BITS = "it reads the bits of floats or the order of memory, which no operator shows"
_SIDE = "it changes or reads something beside its result: files, settings, memory"
_PLACE = "it changes an array in place; make a new one"
_DATES = "it is about dates, which no tensor holds"
_SETTING = "it is no computation: what it changes or tells belongs to the process"
_BACKWARD = (
    "a compiled step computes gradients and updates by itself: leave backward, zero_grad and the "
    "optimizer's step out of the loss; torch.autograd.grad returns gradients inside of one"
)
_CLIPPED = (
    "gradients come when the loss is done: leave it out, and give hagane.compile(loss, optimizer, "
    "max_norm=...), which clips by their norm"
)
_STATES = "use named_parameters() and named_buffers(), which are followed"
_ANOMALIES = "leave it out; hagane.config.debug = True names losses that are no numbers"

TYPED_ONLY: dict[str, str] = {
    "numpy.random.": _DRAWN,
    **dict.fromkeys(
        ("numpy.fft.", "numpy.complex64", "numpy.complex128", "numpy.csingle", "numpy.cdouble"),
        _COMPLEX,
    ),
    **dict.fromkeys(
        ("numpy.frexp", "numpy.nextafter", "numpy.spacing", "numpy.ndarray.byteswap",
         "numpy.ndarray.strides", "numpy.ndarray.flags", "numpy.ndarray.ctypes",
         "numpy.ndarray.base", "numpy.ndarray.tobytes", "numpy.ndarray.tostring"),
        _BITS,
    ),
    **dict.fromkeys(
        ("numpy.save", "numpy.savez", "numpy.seterr", "numpy.set_printoptions",
         "numpy.ndarray.dump", "numpy.ndarray.setflags", "numpy.ndarray.device", "torch.save",
         "torch.set_printoptions"),
        _SIDE,
    ),
    **dict.fromkeys(
        ("numpy.ndarray.itemset", "numpy.ndarray.put"),
        _PLACE,
    ),
    "numpy.lib.stride_tricks.as_strided": _BITS,
    "numpy.isnat": _DATES,
    **dict.fromkeys(
        ("torch.Tensor.backward", "torch.autograd.backward", "torch.Tensor.grad"),
        _BACKWARD,
    ),
    "torch.nn.Module.state_dict": _STATES,
    "torch.autograd.set_detect_anomaly": _ANOMALIES,
    "torch.autograd.detect_anomaly": _ANOMALIES,
    **dict.fromkeys(
        tuple(f"torch.nn.utils.clip_grad_{name}" for name in ("norm", "norm_", "value_")), _CLIPPED
    ),
    **dict.fromkeys(
        ("torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.rand_like",
         "torch.randn_like", "torch.randint_like", "torch.normal", "torch.bernoulli",
         "torch.poisson", "torch.multinomial", "torch.Tensor.multinomial",
         "torch.Tensor.bernoulli", "torch.nn.functional.gumbel_softmax", "torch.nn.init.",
         *(f"torch.distributions.Distribution.{name}"
           for name in ("sample", "rsample", "sample_n")),
         *(f"torch.Tensor.{name}_" for name in (
             "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "random",
             "uniform"))),
        _DRAWN,
    ),
    **dict.fromkeys(
        [f"numpy.{name}" for name in ("fromfile", "genfromtxt", "load", "loadtxt", "memmap")],
        "it reads a file, whose content a graph has not; read it outside, and pass the array",
    ),
    **dict.fromkeys(
        ("torch.polar", "torch.view_as_complex", "torch.imag", "torch.Tensor.imag",
         "torch.Tensor.cfloat", "torch.stft", "torch.istft", "torch.Tensor.stft",
         "torch.Tensor.istft", "torch.linalg.eig",
         "torch.linalg.eigvals", "torch.fft.rfftn", "torch.fft.irfftn",
         *(f"torch.fft.{kind}{count}" for kind in ("fft", "ifft") for count in ("", "2", "n"))),
        _COMPLEX,
    ),
    **dict.fromkeys(
        (*(f"torch.cuda.{name}" for name in (
            "current_device", "device_count", "empty_cache", "manual_seed", "manual_seed_all",
            "set_device", "synchronize",
        )), "torch.distributed.", "torch.set_default_device", "torch.seed",
         "torch.set_float32_matmul_precision", "torch.get_num_threads"),
        _SETTING,
    ),
}  # fmt: skip

# Draws that a program may make and not use, as layers do that training skips; a use is refused.
DRAWN_LATE = frozenset(
    (*(f"torch.{name}" for name in (
        "rand", "randn", "rand_like", "randn_like", "normal", "bernoulli", "Tensor.bernoulli")),
     *(f"numpy.random.{name}" for name in (
         "uniform", "normal", "standard_normal", "random", "random_sample", "rand", "randn")))
)  # fmt: skip


def reason_of(name: str) -> str:
    """Return why a name can only be typed; empty if nothing is said of it."""
    found = TYPED_ONLY.get(name)
    if found is not None:
        return found
    return next((why for key, why in TYPED_ONLY.items()
                 if key.endswith(".") and name.startswith(key)), "")  # fmt: skip


def refusal(name: str) -> str:
    """Return why a name has no meaning in a graph."""
    reason = reason_of(name)
    yet = "" if reason else " yet"
    told = reason or "the checker knows its types, not its values"
    return f"'{name}' cannot be captured{yet}: {told}"


__all__ = ["DRAWN_LATE", "TYPED_ONLY", "reason_of", "refusal"]
