"""Expressions over NumPy arrays: what they give, the checker has to say as NumPy does.

Each line is an expression over the arrays below; ``WRONG`` are expressions that both refuse.
"""

from __future__ import annotations

import numpy as np

ARRAYS = {
    "a": np.ones((2, 3), np.float32),
    "b": np.ones((2, 3), np.float64),
    "c": np.ones((3, 4), np.float32),
    "d": np.ones((4, 2, 3), np.float32),
    "i": np.arange(6, dtype=np.int32).reshape(2, 3),
    "j": np.arange(3),
    "m": np.ones((2, 3), np.bool_),
    "u": np.ones((3,), np.uint8),
    "h": np.ones((2, 3), np.float16),
    "q": np.eye(3, dtype=np.float32),
    "s": np.ones((2, 1, 3, 1), np.float32),
    "v": np.ones((3,), np.float32),
    "z": np.ones((2, 3), np.complex64),
}

RIGHT = """
a + b
a + 1
a + 1.5
a + 1j
i + 1
i + 1.5
i / 2
i // 2
i % 2
i ** 2
u + 1
u + u
u * 2.0
m + 1
m + m
m * 1.5
m & m
m | m
m ^ m
~m
~i
-a
abs(i)
+u
h + a
h + 1.0
h + i
i + u
z + a
z + b
z * 2
a @ c
d @ c
v @ c
a @ v
v @ v
a < b
a == 1
i != j
a >= v
a > v
a <= b
i << 1
i >> j
2 ** a
1 / i
a - v
a * v[:, None].T
a[0]
a[:, 1]
a[..., None]
a[None, :, 1:]
a[::2]
a[:, ::-1]
a[-1, -1]
d[1:, 0, :2]
d[[0, 2, 3]]
d[i[0, :2]]
d[:, [0, 1], [1, 2]]
a[:, j]
a.shape
a.ndim
a.size
a.T
d.T
a.dtype
a.itemsize
a.nbytes
len(a)
a.astype(np.float64)
a.astype('i')
a.astype(int)
a.astype(bool)
a.reshape(3, 2)
a.reshape(-1)
a.reshape((6, 1))
d.reshape(2, -1)
d.transpose()
d.transpose(1, 0, 2)
d.transpose((2, 0, 1))
d.swapaxes(0, 2)
a.ravel()
a.flatten()
a.copy()
s.squeeze()
s.squeeze(axis=1)
s.squeeze((1, 3))
a.sum()
i.sum()
m.sum()
u.sum(axis=0)
a.sum(axis=1)
a.sum(axis=(0, 1))
a.sum(axis=-1, keepdims=True)
a.sum(dtype=np.float64)
a.mean()
i.mean()
h.mean(axis=0)
a.std(axis=1, ddof=1)
i.var()
a.prod()
u.prod()
a.max()
a.max(axis=0)
i.min(axis=1, keepdims=True)
a.argmax()
a.argmax(axis=1)
d.argmin(axis=-1)
m.any()
m.all(axis=0)
a.cumsum()
i.cumsum(axis=1)
a.clip(0, 1)
a.round()
a.dot(c)
a.repeat(2)
a.repeat(2, axis=0)
a.take(j, axis=1)
a.argsort(axis=0)
a.nonzero()[0].dtype
q.trace()
q.diagonal()
a.tolist()[0][0]
np.zeros(3)
np.zeros((2, 3), np.int32)
np.ones((2,), dtype=bool)
np.empty((0, 2))
np.full((2, 3), 7)
np.full((2, 3), 7.0)
np.full((2,), 1, np.float16)
np.zeros_like(i)
np.ones_like(a, dtype=int)
np.full_like(a, 3)
np.array([1, 2, 3])
np.array([[1.0, 2], [3, 4]])
np.array([1, 2], np.float32)
np.array([True, False])
np.array([a, a])
np.asarray(a, np.float64)
np.ascontiguousarray(a)
np.ascontiguousarray(a.T)
np.ascontiguousarray(a.sum())
np.array(3.5)
np.float32(3)
np.int64(3)
np.int32(3) + np.arange(3)
np.uint8(3) + np.arange(3, dtype=np.int8)
np.int16(a)
np.uint32(np.abs(a))
np.uint64(3)
np.float32(a)
np.arange(4, dtype=np.uint8) ** np.uint8(3)
np.arange(4, dtype=np.int16) ** 2
np.arange(5)
np.arange(2, 10, 3)
np.arange(0.0, 1.0, 0.25)
np.arange(5, dtype=np.float32)
np.linspace(0, 1, 7)
np.linspace(0, 1, 7, dtype=np.float32)
np.eye(3)
np.eye(2, 4, dtype=np.int8)
np.eye(3, 4, 1)
np.identity(3)
np.tril(q)
np.triu(d, 1)
np.diag(v)
np.diag(q)
np.meshgrid(j, v)[0]
np.indices((2, 3))
np.reshape(a, (3, 2))
np.transpose(d, (1, 2, 0))
np.moveaxis(d, 0, -1)
np.rollaxis(d, 2)
np.expand_dims(a, 1)
np.expand_dims(a, (0, -1))
np.squeeze(s)
np.broadcast_to(v, (4, 3))
np.flip(a, 0)
np.roll(a, 1)
np.tile(a, (2, 2))
np.tile(v, 3)
np.pad(a, 1)
np.pad(a, ((1, 2), (0, 3)))
np.pad(v, (1, 2))
np.atleast_2d(v)
np.concatenate([a, b])
np.concatenate((a, i), axis=1)
np.concatenate([a, a], axis=None)
np.stack([a, a])
np.stack([a, i], axis=-1)
np.vstack([v, v])
np.hstack([v, v])
np.hstack([a, a])
np.dstack([a, a])
np.column_stack([v, v])
np.split(v, 3)[0]
np.split(d, [1, 3])[1]
np.array_split(v, 2)[0]
np.append(v, 1.0)
np.matmul(a, c)
np.dot(d, c)
np.dot(v, 2)
np.inner(a, a)
np.outer(v, j)
np.kron(q, q)
np.einsum('ij,jk->ik', a, c)
np.einsum('bij,jk->bik', d, c)
np.tensordot(d, a, axes=([1, 2], [0, 1]))
np.tensordot(a, c, 1)
np.cross(v, v)
np.cross(a, q[:2])
np.vdot(a, a)
np.linalg.norm(a)
np.linalg.norm(i, axis=1)
np.linalg.inv(q)
np.linalg.det(q)
np.linalg.solve(q, v)
np.linalg.lstsq(q, v)[0]
np.linalg.solve(q, q)
np.linalg.svd(a)[1]
np.abs(np.linalg.svd(a, full_matrices=False)[2])
np.linalg.svdvals(d)
np.linalg.qr(a)[0]
np.linalg.eigh(q)[0]
np.abs(np.linalg.eigh(q)[1])
np.linalg.eigvalsh(q)
np.linalg.slogdet(q)[1]
np.linalg.matrix_power(q, 3)
np.linalg.matrix_power(q + 4 * np.eye(3), -2)
np.linalg.matrix_rank(a)
np.linalg.norm(a, 2)
np.linalg.norm(a, 'nuc')
np.linalg.norm(d, np.inf, axis=(1, 2))
np.linalg.norm(a, 1, axis=0, keepdims=True)
np.linalg.vector_norm(d, axis=(0, 1))
np.linalg.matrix_norm(d)
np.linalg.qr(c, 'complete')[0]
np.linalg.qr(c)[1]
np.linalg.trace(q)
np.linalg.diagonal(d)
np.linalg.outer(v, v)
np.linalg.vecdot(a, a)
np.linalg.matmul(a, c)
np.linalg.cross(v, v)
np.linalg.tensordot(a, c, axes=1)
np.linalg.matrix_transpose(d)
np.linalg.cholesky(q @ q.T + np.eye(3, dtype=np.float32))
np.linalg.pinv(a)
np.where(m, a, b)
np.where(m, a, 0)
np.where(m, 1, 0)
np.where(m, i, 0.5)
np.take(d, j)
np.take(d, i % 4, axis=0)
np.take_along_axis(a, i % 2, axis=0)
np.choose(i % 2, [a, a])
np.select([m, ~m], [a, b])
np.argmax(d, axis=1)
np.argsort(a)
np.sort(i, axis=0)
np.sort(d, axis=None)
np.searchsorted(np.sort(j), a)
np.searchsorted(np.sort(v), a, side='right')
np.digitize(a, np.sort(j))
np.digitize(a, np.sort(v)[::-1], True)
np.isin(i, j)
np.count_nonzero(m, axis=0)
np.exp(a)
np.exp(i)
np.exp(h)
np.sqrt(u)
np.log1p(b)
np.tanh(a)
np.sin(i)
np.sign(i)
np.floor(a)
np.rint(i)
np.isnan(a)
np.isfinite(i)
np.abs(z)
np.abs(a)
np.conj(z)
np.square(i)
np.maximum(a, 0)
np.maximum(a, b)
np.minimum(i, u)
np.power(i, 2)
np.mod(i, 2)
np.arctan2(a, b)
np.hypot(a, 1)
np.logical_and(a, i)
np.logical_not(i)
np.bitwise_and(i, 1)
np.add(a, b)
np.divide(i, i)
np.float_power(a, 2)
np.clip(i, 0, 2)
np.clip(a, 0, None)
np.sum(d, axis=(0, 2))
np.sum(m)
np.prod(i)
np.mean(d, axis=0, keepdims=True)
np.std(a)
np.var(i, axis=0, dtype=np.float32)
np.average(a, axis=0)
np.median(a, axis=1)
np.corrcoef(v, j)
np.cov(a, i)
np.lib.stride_tricks.sliding_window_view(a, 2, axis=1)
np.lib.stride_tricks.sliding_window_view(a, (2, 2))
np.lib.stride_tricks.sliding_window_view(j, 2)
np.percentile(a, 50)
np.quantile(b, [0.1, 0.9], axis=0)
np.max(a)
np.amin(i, axis=0)
np.amax(a)
np.amax(i, axis=1)
np.ptp(a, axis=0)
np.any(m, axis=1)
np.cumsum(u)
np.cumprod(a, axis=1)
np.diff(a)
np.diff(v, n=2)
np.trace(q)
np.bincount(j).dtype
np.unique(i).dtype
np.shape(a)
np.ndim(d)
np.size(a, 1)
np.result_type(a, i)
np.promote_types(np.float16, np.int16)
np.issubdtype(a.dtype, np.floating)
np.dtype('float32')
np.finfo(np.float32).bits
a.dtype == np.float32
a.dtype.kind
np.random.rand(2, 3)
np.random.randn(4)
np.random.uniform(-1, 1, (2, 3))
np.random.uniform(0, v)
np.random.normal(size=a.shape)
np.random.normal(0.0, 1.0, 5)
np.random.randint(0, 5, size=(2, 2))
np.random.permutation(5)
np.random.permutation(a)
np.random.choice(5, 3)
np.random.choice(v, (2, 2))
np.random.RandomState(0).randn(2)
np.random.default_rng(0).normal(size=(3,))
np.random.default_rng(0).integers(0, 5, 4)
np.random.default_rng(0).random((2, 2))
np.random.binomial(1, 0.5, size=3)
np.random.dirichlet(v, 2)
np.nan_to_num(a)
np.real(z)
np.round(b, 2)
np.broadcast_arrays(a, v)[1]
np.fft.rfft(a)
np.fft.fft(b, axis=0)
np.convolve(v, v)
np.interp(a, np.sort(v), v)
np.insert(v, 0, 1.0)
np.delete(v, 0)
np.ravel(a)
np.copy(i)
np.isclose(a, b)
np.repeat(a, [1, 2], axis=0)
np.swapaxes(d, 0, 1)
np.argwhere(m).dtype
np.concat([a, a])
np.permute_dims(a, (1, 0))
np.matrix_transpose(d)
np.unstack(d)[0]
np.cumulative_sum(v)
np.vecdot(a, a)
np.astype(a, np.int64)
np.acos(a)
np.bitwise_invert(i)
np.pow(a, 2)
np.absolute(i)
np.acosh(a + 5)
np.arccos(a / 4)
np.arccosh(a + 5)
np.arcsin(a / 4)
np.arcsinh(a)
np.arctan(a)
np.arctanh(a / 4)
np.asin(a / 4)
np.asinh(a)
np.atan(b)
np.atan2(a, 1)
np.atanh(a / 4)
np.around(b)
np.bitwise_count(i)
np.bitwise_left_shift(i, 2)
np.bitwise_not(m)
np.bitwise_or(i, 4)
np.bitwise_right_shift(u, 1)
np.bitwise_xor(i, 3)
np.cbrt(a)
np.ceil(a)
np.ceil(i)
np.conjugate(a)
np.conj(a)
np.copysign(a, -1)
np.cos(b)
np.cosh(a)
np.deg2rad(a)
np.degrees(a)
np.divmod(i, 2)[1]
np.divmod(a, 2)[0]
np.equal(a, 1)
np.exp2(a)
np.expm1(b)
np.fabs(a)
np.floor_divide(a, 2)
np.floor_divide(u, 2)
np.fmax(a, 0)
np.fmin(i, 1)
np.fmod(a, 2)
np.fmod(i, -2)
np.gcd(i, 2)
np.greater(a, b)
np.greater_equal(m, m)
np.heaviside(a, 0.5)
np.invert(i)
np.isinf(a)
np.isnan(i)
np.lcm(i, 3)
np.ldexp(a, i)
np.left_shift(i, i)
np.less(m, m)
np.less_equal(u, 1)
np.log(a)
np.log10(b)
np.log2(a)
np.logaddexp(a, b)
np.logaddexp2(a, b)
np.logical_or(a, m)
np.logical_xor(i, m)
np.modf(a)[0]
np.modf(b)[1]
np.multiply(a, 2)
np.negative(i)
np.not_equal(i, 1)
np.positive(a)
np.rad2deg(a)
np.radians(h)
np.reciprocal(a)
np.reciprocal(i + 1)
np.remainder(a, 2)
np.right_shift(i, 1)
np.signbit(a)
np.sinh(a)
np.subtract(a, i)
np.tan(a)
np.true_divide(i, 2)
np.trunc(a)
np.sinc(a)
np.i0(a)
np.real(a)
np.imag(a)
np.angle(a)
a.real
a.imag
np.nan_to_num(a / i)
np.nan_to_num(i)
np.round(i, 1)
a.mT
a.flat[1]
np.fliplr(d)
np.flipud(a)
np.rot90(a)
np.rot90(d, 3, axes=(1, 2))
np.roll(d, (1, 2), axis=(0, 2))
np.resize(a, (3, 4))
np.pad(a, 1, mode='edge')
np.pad(d, ((1, 1), (0, 0), (2, 1)), mode='reflect')
np.pad(v, 2, mode='wrap')
np.pad(m, 1)
np.pad(a, (1, 0), constant_values=2.5)
np.atleast_1d(np.float32(3))
np.atleast_3d(v)
np.hsplit(a, 3)[1]
np.vsplit(d, 2)[1]
np.dsplit(d, 3)[0]
np.array([v, [1, 2, 3]])
np.array([a.sum(), 2.0])
np.array([v[0], v[1]])
np.array(v, ndmin=3)
np.stack([v[None], j[None]])
np.full((2, 2), a[0, 0])
np.full((3,), v)
np.full((30, 30), 1.5)
np.zeros((40, 40))
np.eye(20)
np.eye(3, k=1)
np.tri(3, 4, -1)
np.tril(v)
np.diagflat(a)
np.diag(v, 1)
np.diagonal(d, 1, 1, 2)
np.identity(20)
np.linspace(0, v, 5)
np.linspace(0, 1, 5, endpoint=False)
np.linspace(0, 10, 300, dtype=np.int32)
np.linspace(0, 1, 5, retstep=True)[1]
np.linspace(v, v + 2, 4, endpoint=False, retstep=True)[1]
(v[0] > 0).mean()
v[0].mean()
i // (i - 1)
i % (i - 1)
np.fmod(i, i - 1)
divmod(u, u - 1)[1]
i // 0
np.logspace(0, 2, 3)
np.geomspace(1, 8, 4)
np.arange(len(a) * 2)
np.indices((20, 20))
np.tril_indices(3)[0]
np.triu_indices(20, 1)[1]
np.hanning(5)
np.hamming(300)
np.blackman(4)
np.bartlett(7)
np.bartlett(300)
np.inner(d, a)
np.vecdot(d, a)
np.dot(d, d.transpose(0, 2, 1))
i @ i.T
u @ u
np.einsum('ij,ij', a, a)
np.einsum('ii->i', q)
np.einsum('...j,...j->...', d, a)
np.einsum('ij,kj->ki', i, i)
np.tensordot(i, i.T, 1)
np.nansum(a)
np.nanprod(a, axis=0)
np.nanmean(a, axis=1)
np.nanstd(a, ddof=1)
np.nanvar(b, axis=0)
np.nanmax(a, axis=0)
np.nanmin(i)
np.nanargmax(a, axis=1)
np.nanargmin(a)
np.nanmedian(a, axis=0)
np.nanquantile(a, 0.3)
np.nanpercentile(b, [10, 60], axis=1)
np.nancumsum(a, axis=0)
np.nancumprod(b)
np.quantile(a, 0.25, axis=1, keepdims=True)
np.quantile(a, 0.3, method='nearest')
np.median(i)
np.ptp(i)
np.average(a, axis=1, weights=v)
np.average(a, weights=b)
np.cumprod(u)
np.cumulative_prod(v, include_initial=True)
np.cumulative_sum(a, axis=1)
np.diff(m, axis=0)
np.gradient(d, axis=0)
np.gradient(a[0], 2.0)
np.cov(a)
np.cov(v)
np.cov(a, fweights=j)
np.cov(v, aweights=np.abs(v), ddof=0)
np.corrcoef(d[:, 0])
np.trace(d, 1, 1, 2)
np.argsort(d, axis=None)
np.lexsort((i[0], a[0]))
np.partition(v, 1)[1]
np.argpartition(v, 1)[1]
np.sort(m)
np.take(a, [5, -7], mode='clip')
np.take(a, 7, mode='wrap')
i.clip(0, 1).choose([a, b])
np.unravel_index(i, (4, 5))[1]
np.ravel_multi_index((i[0] % 2, i[1] % 3), (2, 3))
np.histogram(a, 4)[0]
np.histogram(i, 3)[1]
np.isin(i, [1, 2], invert=True)
np.convolve(v, np.array([1.0, -1.0]), 'same')
np.correlate(v, v)
np.correlate(b[0], v[:2], 'full')
np.convolve(j, j, 'valid')
np.insert(a, 1, v[:2], axis=1)
np.insert(v, -1, [5.0, 6.0])
np.delete(a, [0, -1], axis=1)
np.isscalar(3)
np.can_cast(np.int32, np.float64)
np.broadcast_shapes((2, 1), (3,))
a.astype(np.result_type(a, i))
a.astype(np.promote_types(np.float16, np.int16))
a.astype(np.dtype('float64'))
a.astype(i.dtype)
a.item(1, 2)
v.item(0)
float(a[0, 0])
a.view(np.int32)
a.cumprod(axis=0)
a.compress([True, False], axis=0).shape[1]
np.bool_(a)
np.float64(i)
np.int8(i)
np.uint16(u)
np.half(a)
np.empty((2, 0))
np.empty_like(a[:0])
"""

# Results whose sizes the data decide: only their values are compared.
OPEN = """
a.nonzero()
np.nonzero(i)
np.argwhere(m)
np.flatnonzero(i)
np.unique(i)
np.unique(a, return_index=True, return_inverse=True, return_counts=True)
np.unique(i, axis=0)
np.sort(np.unique_values(j))
np.unique_counts(i)
np.unique_inverse(i)
np.unique_all(i)
np.bincount(j)
np.bincount(i.ravel(), minlength=5)
np.bincount(j, weights=v)
np.compress(m[0], a, axis=1)
np.compress(m.ravel(), a)
np.extract(m, a)
a.compress(m[:, 0], axis=0)
np.intersect1d(i, j)
np.union1d(i, j)
np.setdiff1d(j, i)
np.setxor1d(j, u)
np.repeat(a, j, axis=1)
a[m]
np.where(m)
np.allclose(a, b)
np.array_equal(i, i)
np.array_equiv(a, a)
int(i[1, 1])
"""

WRONG = """
a + c
a @ b
c @ c
a - d[:, :, :2]
m - m
~a
a & m
i << 1.5
a.reshape(4, 2)
a.reshape(-1, 4)
a.transpose(0, 2)
d.transpose(0, 1)
a.sum(axis=2)
a.sum(axis=(0, 0))
a.argmax(axis=5)
s.squeeze(axis=0)
a[2]
a[0, 0, 0]
a[:, 3]
a[v]
np.concatenate([a, c])
np.concatenate([a, v])
np.concatenate([])
np.stack([a, c])
np.vstack([a, c])
np.split(v, 2)
np.zeros((2, -1))
np.broadcast_to(a, (3, 3))
np.expand_dims(a, 3)
np.swapaxes(a, 0, 2)
np.moveaxis(a, 0, 5)
np.pad(a, ((1, 2), (0, 3), (1, 1)))
np.where(m, c, a)
np.where(m, a)
np.take(a, v)
np.take(a, j, axis=2)
np.dot(a, a)
np.matmul(a, 2)
np.inner(a, c)
np.tensordot(a, a, 1)
np.einsum('ij,jk->ik', a, a)
np.linalg.inv(a)
np.linalg.solve(q, d[0, :, 0])
np.bitwise_and(a, a)
np.bincount(v)
np.array([[1, 2], [3]])
np.float32(1, 2)
np.sum(a, axis='x')
np.repeat(a, [1, 2, 3], axis=0)
np.exp()
np.add(a)
np.arange()
np.random.choice(v, 2, p=a[0, :2])
len(np.float32(3))
a.no_such_attribute
np.average(a, axis=0, weights=v)
np.cross(a[:, :1], a[:, :1])
"""


def calls(text: str) -> list[str]:
    """Return the expressions of a text, one a line."""
    return [line for line in text.splitlines() if line]
