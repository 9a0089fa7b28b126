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
np.array(3.5)
np.float32(3)
np.int64(3)
np.float32(a)
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
np.linalg.svd(a)[1]
np.linalg.svd(a, full_matrices=False)[2]
np.linalg.qr(a)[0]
np.linalg.eigh(q)[0]
np.linalg.cholesky(q)
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
np.searchsorted(j, a)
np.digitize(a, j)
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
np.percentile(a, 50)
np.quantile(b, [0.1, 0.9], axis=0)
np.max(a)
np.amin(i, axis=0)
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
np.interp(a, v, v)
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
