"""Calls of PyTorch that move, join, take, reduce and sort elements."""

SHAPES = """
x: float32[n=2, c=3, h=4]; y: float32[n=2, c=3, h=4]; i: int64[n=2, c=3, h=4]; b: bool[n=2, c=3, h=4]
    x.view(x.size(0), -1)
    x.view(-1)
    x.view(-1, x.shape[2])
    x.reshape(x.shape[0] * x.shape[1], x.shape[2])
    x.reshape(x.shape[0], 1, -1)
    torch.reshape(x, (-1, x.size(2)))
    x.view((x.size(0), -1, 1))
    x.view_as(y)
    x.reshape_as(y)
    x.view(torch.int32)
    x.flatten()
    x.flatten(1)
    x.flatten(0, 1)
    torch.flatten(x, start_dim=1)
    torch.flatten(x, 1, -1)
    x.ravel()
    torch.ravel(x)
    x.unflatten(0, (1, -1))
    torch.unflatten(x, 2, (x.size(2), 1))
    x.transpose(1, 2)
    x.transpose(-1, 0)
    torch.transpose(x, 0, 1)
    x.swapaxes(0, 2)
    torch.swapdims(x, 0, 1)
    x.transpose_(0, 1); x
    x.permute(2, 0, 1)
    x.permute((0, 2, 1))
    x.permute(0, -1, 1)
    torch.permute(x, (1, 2, 0))
    x.mT
    x[0].T
    x[0].t()
    torch.t(x[0])
    x.adjoint()
    x.movedim(0, 2)
    torch.movedim(x, (0, 1), (2, 0))
    torch.moveaxis(x, -1, 0)
    x.unsqueeze(0)
    x.unsqueeze(-1)
    torch.unsqueeze(x, 1)
    x.unsqueeze(1).squeeze(1)
    x.unsqueeze(0).squeeze(0)
    x[:, None].squeeze(dim=1)
    torch.squeeze(x[:, :, None, :], 2)
    x[None, :, None].squeeze((0, 2))
    x.unsqueeze(1).expand(-1, 5, -1, -1)
    x[0, 0].expand(7, -1)
    x.unsqueeze(0).expand(2, *x.shape)
    x[:, :1].expand(x.size(0), 5, x.size(2))
    x[:, :1].expand_as(x)
    x.repeat(2, 1, 1)
    x.repeat(1, 2, 3, 1)
    x.repeat((2, 2, 2))
    x.tile(2)
    torch.tile(x, (2, 1))
    x.repeat_interleave(2, dim=1)
    torch.repeat_interleave(x, 3)
    x.repeat_interleave(2)
    x.flip(0)
    x.flip(0, 1)
    torch.flip(x, [0, 2])
    torch.flip(x, dims=(1,))
    torch.fliplr(x)
    torch.flipud(x)
    torch.roll(x, 1, 0)
    torch.roll(x, shifts=(1, 2), dims=(0, 1))
    x.roll(1)
    x.rot90()
    torch.rot90(x, 1, (1, 2))
    torch.rot90(x, 2, [0, 1])
    x.tril()
    torch.triu(x, diagonal=1)
    x[0].tril(-1)
    torch.cat([x, y], dim=1)
    torch.cat((x, y), -1)
    torch.cat([x, i], 0)
    torch.cat([x, y, x], dim=2)
    torch.cat([x], 0)
    torch.cat((x, x[:, :1]), dim=1)
    torch.cat(tensors=(x, y), dim=0)
    torch.concat([x, y], axis=1)
    torch.concatenate([x, y], dim=1)
    torch.stack([x, y])
    torch.stack((x, y), dim=1)
    torch.stack([x, y], -1)
    torch.stack([x, i], 2)
    torch.vstack([x, y])
    torch.hstack((x, y))
    torch.dstack([x, y])
    torch.column_stack([x[0], y[0]])
    torch.column_stack([x[0, 0], y[0, 0]])
    torch.row_stack([x, y])
    torch.hstack([x[0, 0], y[0, 0]])
    torch.vstack([x[0, 0], y[0, 0]])
    torch.dstack([x[0, 0], y[0, 0]])
    x.new_zeros(2, 5).unbind(0)
    x[:, :1].chunk(1, dim=1)
    torch.cat([x, x], 1).chunk(2, dim=1)
    torch.cat([x, x, x], -1).chunk(3, dim=-1)
    torch.chunk(torch.cat([x, y]), 2)
    torch.cat([x, x], 2).split(x.size(2), dim=2)
    x.split([1, x.size(0) - 1])
    torch.split(torch.cat([x, x], 1), [x.size(1), x.size(1)], dim=1)
    torch.split_with_sizes(x, [x.size(0)])
    torch.cat([x, x], 2).tensor_split(2, dim=2)
    x.narrow(1, 0, 1)
    torch.narrow(x, 0, 0, 1)
    x.select(1, 0)
    x.select(-1, -1)
    torch.select(x, 0, 0)
    x.diagonal()
    torch.diagonal(x, dim1=0, dim2=2)
    x.diagonal(dim1=-2, dim2=-1)
    torch.diag_embed(x)
    x[0].diag()
    torch.diag(x[0, 0])
    torch.diag(x[0, 0], 1)
    torch.diagflat(x)
    x.nonzero()
    torch.nonzero(b)
    b.nonzero(as_tuple=True)
    torch.where(b)
    torch.argwhere(b)
    x.masked_select(b)
    torch.masked_select(x, b)
    x.masked_scatter(b, y)
    x.take(i[0] * 0)
    torch.take_along_dim(x, i[:, :1] * 0, dim=1)
    x.sum()
    x.sum(1)
    x.sum(-1, keepdim=True)
    x.sum(dim=(0, 2))
    x.sum([1, 2], keepdim=True)
    x.sum(axis=1)
    torch.sum(x, dim=1)
    torch.sum(x, (1, 2), True)
    x.sum(dtype=torch.float64)
    i.sum(0)
    b.sum(dim=1)
    x.sum(dim=None)
    x.mean()
    x.mean(-1)
    x.mean(1, True)
    x.mean(dim=[-2, -1])
    torch.mean(x, dim=(1, 2), keepdim=True)
    i.float().mean(0)
    i.mean(dtype=torch.float32)
    torch.mean(i, 0, dtype=torch.float64)
    x.std()
    x.std(1)
    x.std(dim=-1, keepdim=True)
    x.std(-1, unbiased=False)
    x.std(1, False)
    x.std(unbiased=False)
    x.std(False)
    x.var(dim=1, correction=0)
    x.var(-1, unbiased=False, keepdim=True)
    torch.var(x, 1, True)
    torch.var(x, 1, True, True)
    torch.std(x, dim=(0, 1))
    torch.var_mean(x, dim=1)
    torch.std_mean(x, (1, 2), keepdim=True)
    torch.var_mean(x)
    x.prod()
    x.prod(1)
    i.prod(dim=1, keepdim=True)
    x.max()
    x.max(1)
    x.max(dim=-1)[0]
    x.max(-1, keepdim=True)
    x.max(1).values
    x.max(1).indices
    values, indices = x.max(1); indices
    torch.max(x, 1)
    torch.max(x, y)
    torch.max(x)
    x.max(y)
    x.min(0, keepdim=True).values
    torch.min(x, dim=2)
    torch.min(x, y[0])
    x.amax(1)
    x.amax(dim=(1, 2), keepdim=True)
    torch.amax(x)
    torch.amin(x, (0,))
    x.amin(-1)
    torch.aminmax(x)
    torch.aminmax(x, dim=1, keepdim=True)
    x.argmax()
    x.argmax(1)
    x.argmax(dim=-1, keepdim=True)
    torch.argmin(x, dim=0)
    torch.argmax(x, -1)
    x.median()
    x.median(1)
    x.median(dim=-1, keepdim=True)
    x.median(-1)
    torch.median(x, -1).values
    x.mode(1)
    torch.mode(x)
    x.kthvalue(1, dim=1)
    x.kthvalue(1)
    x.quantile(0.5)
    torch.quantile(x, 0.5, dim=1)
    torch.quantile(x, torch.tensor([0.1, 0.9]), dim=1)
    torch.quantile(x, torch.tensor([0.1, 0.9]), dim=1, keepdim=True)
    x.nanmean(1)
    x.nansum()
    torch.nanmedian(x)
    x.norm()
    x.norm(dim=1)
    x.norm(p=2, dim=-1, keepdim=True)
    x.norm(2, 1)
    torch.norm(x, p=1, dim=(1, 2))
    x.norm(1)
    torch.linalg.norm(x, dim=-1)
    torch.linalg.norm(x, dim=(1, 2))
    torch.linalg.vector_norm(x, dim=1, keepdim=True)
    torch.linalg.vector_norm(x, 2, -1)
    torch.linalg.matrix_norm(x)
    torch.logsumexp(x, dim=1)
    x.logsumexp(-1, keepdim=True)
    torch.logsumexp(x, (1, 2))
    b.any()
    b.any(1)
    torch.all(b, dim=-1, keepdim=True)
    x.all()
    (x > 0).all(dim=1)
    torch.any(b, (0, 1))
    torch.count_nonzero(x)
    torch.count_nonzero(x, dim=1)
    x.cumsum(0)
    torch.cumsum(x, dim=-1)
    i.cumsum(1)
    b.cumsum(1)
    x.cumprod(1)
    torch.cummax(x, dim=1)
    torch.logcumsumexp(x, 0)
    x.sort()
    x.sort(1, descending=True)
    x.sort(dim=1)[0]
    torch.sort(x, dim=-1, descending=True, stable=True)
    torch.sort(x, 0).indices
    x.argsort()
    torch.argsort(x, dim=1, descending=True)
    x.msort()
    x.topk(1)
    x.topk(x.size(1), dim=1)
    torch.topk(x, 1, dim=0, largest=False)
    torch.topk(x, k=1, dim=-1).indices
    torch.unique(i)
    i.unique()
    torch.unique(i, return_inverse=True)
    torch.unique(i, return_counts=True)
    torch.unique(i, sorted=True, return_inverse=True, return_counts=True)
    torch.unique(i, dim=0)
    torch.unique_consecutive(i)
    torch.bincount(i.flatten())
    torch.bincount(i.flatten(), minlength=10)
    torch.bincount(i.flatten(), weights=x.flatten())
    torch.histc(x, bins=10)
    x.histc(5, 0, 1)
    torch.softmax(x, dim=1)
    x.softmax(-1)
    F.softmax(x, dim=1)
    F.softmax(x, -1, dtype=torch.float64)
    F.log_softmax(x, dim=-1)
    x.log_softmax(1)
    torch.log_softmax(x, 0)
    F.softmin(x, dim=1)
    F.gumbel_softmax(x, tau=1.0, hard=True, dim=-1)
    torch.cov(x[0])
    torch.corrcoef(x[0])
    torch.diff(x)
    torch.diff(x, dim=0)
    torch.trace(x[0])
    x[0].trace()
    torch.dist(x, y)
    torch.cumulative_trapezoid(x, dim=1)
    torch.trapezoid(x, dim=1)
    x.stride()
    x.element_size()
    torch.scatter(x, 1, torch.zeros_like(i), y)
    x.scatter(1, torch.zeros_like(i), 1.0)
    x.scatter_(-1, torch.zeros_like(i), y)
    x.scatter_add(0, torch.zeros_like(i), y)
    x.scatter_add_(1, torch.zeros_like(i)[:, :1], y)
    torch.scatter_reduce(x, 1, torch.zeros_like(i), y, reduce='sum')
    torch.gather(x, 1, torch.zeros_like(i))
    x.gather(2, torch.zeros_like(i)[:, :, :1])
    x.gather(dim=0, index=torch.zeros_like(i)[:1])
    x.index_select(0, torch.tensor([0]))
    torch.index_select(x, dim=1, index=torch.tensor([0, 0, 0]))
    x.index_select(-1, torch.zeros(5, dtype=torch.long))
    x.index_add(0, torch.tensor([0]), y[:1])
    x.index_add_(1, torch.tensor([0]), y[:, :1])
    x.index_fill(1, torch.tensor([0]), 2.0)
    x.index_copy(0, torch.tensor([0]), y[:1])
    x.index_put((torch.tensor([0]),), y[:1])
    x.put_(torch.tensor([0]), torch.tensor([1.0]))
    x.select_scatter(y[0], 0, 0)
    torch.searchsorted(x.sort().values, y)
    torch.bucketize(x, torch.tensor([0.2, 0.5]))
    torch.isin(i, torch.tensor([1, 2]))
    x.unfold(2, 1, 1)
    x.as_strided((1, 1), (1, 1))
    torch.block_diag(x[0], y[0])
    torch.combinations(x[0, 0][:1].repeat(4))
    torch.cartesian_prod(torch.arange(3), torch.arange(4))
    torch.meshgrid(x[0, 0], x[0, :, 0], indexing='ij')
    torch.meshgrid(torch.arange(3), torch.arange(x.size(1)), indexing='xy')
    torch.meshgrid([torch.arange(3.0), torch.arange(4.0)], indexing='ij')
    torch.atleast_1d(x)
    torch.atleast_2d(x[0, 0])
    torch.atleast_3d(x[0])
    torch.squeeze(x[:1, :1])
    x.sum_to_size(1, x.size(1), x.size(2))
    x[0, 0, 0].item()
    x[0, 0, 0].tolist()
    torch.renorm(x, 2, 0, 1.0)
    torch.vander(x[0, 0])
    torch.tril(torch.ones(x.size(1), x.size(1)))
    torch.triu(torch.ones(x.size(1), x.size(2)) * float('-inf'), diagonal=1)

x: float32[8, 6]; e: float32[0, 3]; m: float32[4]; s: float32[]; w: float32[1, 3, 1, 5]; r: float32[7, 2]
    x.view(2, 4, 6)
    x.view(2, -1, 3)
    x.view(2, 4, 2, 3).transpose(1, 2)
    x.reshape(-1, 12)
    x.view(torch.Size([6, 8]))
    x.unflatten(1, (2, 3))
    x.unflatten(-1, (-1, 2))
    x.chunk(3)
    x.chunk(4, 1)
    x.chunk(3, dim=0)
    r.chunk(3)
    r.chunk(4)
    x.split(3)
    x.split(4, dim=1)
    x.split([2, 6])
    torch.split(r, 3)
    r.tensor_split(3)
    r.tensor_split([2, 5])
    torch.hsplit(x, 2)
    torch.vsplit(x, 4)
    x.unbind(1)
    torch.unbind(r)
    x.unfold(0, 3, 2)
    x.unfold(1, 2, 1)
    m.unfold(0, 2, 2)
    x.diagonal(2)
    x.diagonal(offset=-3)
    torch.diag(x, 1)
    torch.diag(m, -2)
    torch.diag_embed(m, offset=1)
    torch.diag_embed(x, dim1=0, dim2=2)
    e.sum()
    e.sum(0)
    e.mean(1)
    e + e
    torch.cat([e, r[:, :1].expand(-1, 3)])
    torch.cat([e, e])
    torch.cat([torch.zeros(0), x])
    e.view(3, 0)
    e.t() @ e
    e.max(1)
    s.sum()
    s.unsqueeze(0)
    s.view(1)
    s.reshape(1, 1)
    s.flatten()
    s.expand(3)
    s.repeat(2)
    s.squeeze()
    s.mean(0)
    s.max()
    s.max(0)
    s.argmax()
    s + m
    s.t()
    torch.stack([s, s])
    torch.cat([s.view(1), m])
    w.squeeze()
    w.squeeze(0)
    w.squeeze(1)
    w.squeeze(-2)
    w.squeeze((0, 2))
    w.squeeze_(0); w
    w.expand(4, 3, 2, 5)
    w.expand(6, 4, 3, 2, 5)
    w.repeat(2, 1, 3, 1)
    w.flatten(1, 2)
    w.flatten(2)
    w.permute(3, 2, 1, 0)
    torch.topk(x, 3)
    x.topk(2, 0)
    x.kthvalue(3)
    x.median(dim=0)
    torch.cross(r[:3], r[:3], dim=0)
    torch.linalg.cross(e, e)
    torch.repeat_interleave(torch.tensor([1, 2, 3]), 2)
    torch.repeat_interleave(r, torch.tensor([1, 0, 2, 1, 1, 1, 1]), dim=0)
    torch.repeat_interleave(torch.tensor([1, 2, 3]))
    torch.nn.functional.one_hot(torch.tensor([0, 2, 1]), 4)
    F.one_hot(torch.tensor([[0, 2, 1]]))
    torch.histogram(x, 4)
    x.cov()
    torch.cov(m)
    torch.diff(x, n=2)
    torch.diff(x, dim=0, prepend=x[:1])
    torch.take_along_dim(x, x.argsort(1), 1)
    x.T
    x.movedim(1, 0)
    x.amax((0, 1), keepdim=True)
    x.storage_offset()
    x.expand(2, 8, 6)
    x.expand(2, -1, -1)
    x.nonzero().size(1)
    torch.broadcast_to(m, (3, 4))
    torch.cdist(x, x[:3])
    torch.tensordot(x, x, dims=([1], [1]))
    torch.tensordot(x, x.t(), 1)
    torch.triu_indices(3, 3)
    torch.tril_indices(3, 4, offset=1)
    torch.multinomial(x, 2)
    torch.multinomial(m, 10, replacement=True)
    x.multinomial(3)
    torch.eye(3)
    torch.eye(3, 4)
    torch.randperm(5)
    torch.linspace(0, 1, 5)
    torch.linspace(0, 1, steps=7, dtype=torch.float64)
    torch.logspace(0, 1, 5)
    torch.arange(5)
    torch.arange(2, 8)
    torch.arange(0, 10, 3)
    torch.arange(0, 1, 0.1)
    torch.arange(5.0)
    torch.arange(5, dtype=torch.float32)
    torch.arange(5, 0, -2)
    torch.arange(start=1, end=4)
    torch.range(0, 4)
    torch.zeros(2, 3)
    torch.zeros((2, 3), dtype=torch.long)
    torch.zeros([2])
    torch.zeros(size=(4, 1))
    torch.zeros(())
    torch.ones(3).bool()
    torch.ones(2, 2, dtype=torch.bool, device='cpu')
    torch.empty(0, 4)
    torch.rand(2, 3)
    torch.randn((2, 3), requires_grad=True)
    torch.randn(4, dtype=torch.float64)
    torch.randint(0, 10, (2, 3))
    torch.randint(10, (4,))
    torch.randint(low=0, high=5, size=(3,))
    torch.randint(3, (2,), dtype=torch.int32)
    torch.full((2, 3), 1.5)
    torch.full((2,), 7)
    torch.full([2], True)
    torch.full((2,), 1, dtype=torch.float16)
    torch.full(size=(2,), fill_value=0.0)
    torch.tensor(1)
    torch.tensor(1.5)
    torch.tensor(True)
    torch.tensor([1, 2, 3])
    torch.tensor([[1.0, 2], [3, 4]])
    torch.tensor([])
    torch.tensor([True, False])
    torch.tensor([1, 2], dtype=torch.float32)
    torch.tensor((1, 2.5))
    torch.tensor([[True, 1]]).dtype == torch.int64
    torch.as_tensor([1, 2])
    torch.as_tensor(x, dtype=torch.float64)
    torch.scalar_tensor(2)
    torch.Tensor(2, 3)
    torch.Tensor([1, 2])
    torch.LongTensor([1, 2])
    torch.FloatTensor(2, 3)
    torch.BoolTensor([True])
    torch.normal(0.0, 1.0, (2, 3))
    torch.normal(0, 1, size=(2,))
    torch.normal(m, 1.0)
    torch.hann_window(8)
    torch.hamming_window(6)
    torch.complex(x, x)
    torch.empty_strided((2, 3), (3, 1))
    torch.Size([2, 3])
    torch.Size([2, 3]).numel()
    torch.from_numpy(m.numpy())
    torch.finfo(torch.float32).max > 1
    torch.finfo(x.dtype).min < 0
    torch.iinfo(torch.int64).max > 0
    torch.is_grad_enabled()
    torch.get_default_dtype() == torch.float32
    torch.cuda.is_available()
    torch.randn(2, generator=torch.Generator().manual_seed(0))
    torch.randperm(x.size(0))[:3]
    torch.bernoulli(torch.full((3,), 0.5))
    torch.zeros(2).new_tensor(3.0)
    torch.stft(torch.rand(2, 64), n_fft=16, hop_length=4, return_complex=True)
    torch.stft(torch.rand(64), 16, window=torch.hann_window(16), return_complex=True, center=False)
    torch.fft.fft(x)
    torch.fft.rfft(x)
    torch.fft.irfft(torch.fft.rfft(x))
    torch.fft.irfft(torch.fft.rfft(x), n=5)
    torch.fft.fft2(x)
    torch.fft.ifft2(x)
    torch.fft.rfft2(x)
    torch.fft.irfft2(torch.fft.rfft2(x))
    torch.fft.fftn(x)
    torch.fft.fft(x, n=10, dim=0)
    torch.fft.fftshift(x)
    torch.fft.ifftshift(x, dim=-1)
    torch.fft.fftfreq(8)
    torch.fft.rfftfreq(8, d=0.5)
    torch.fft.rfft(x.double())
"""

INDEXING = """
x: float32[n=4, c=5, h=6]; i: int64[n=4]; b: bool[n=4]; b2: bool[n=4, c=5]; k: int64[2, 3]; o: int64[]; v: float32[c=5, h=6]
    x[0]
    x[-1]
    x[0, 0]
    x[0, 0, 0]
    x[:]
    x[:, 0]
    x[..., 0]
    x[0, ...]
    x[...]
    x[:, :, -1]
    x[..., -1, :]
    x[:, ..., 0]
    x[None]
    x[:, None]
    x[..., None]
    x[:, None, :, None]
    x[None, ..., None]
    x[0, None]
    x[1:]
    x[:-1]
    x[:, 1:-1]
    x[:, :, 1:]
    x[:, ::2]
    x[:, 1::2]
    x[..., ::3]
    x[1:-1, 1:-1]
    x[:1]
    x[-1:]
    x[:, -1:]
    x[:, :1, 0]
    x[0:1, ..., 0:1]
    x[:x.size(0)]
    x[:, :x.shape[1] // 2]
    x[:, x.shape[1] // 2:]
    x[..., :x.size(-1) - 1]
    x[b]
    x[b2]
    x[b, 0]
    x[b2, 0]
    x[b2][:, None]
    x[..., 0][b2]
    x[x > 0.5]
    x[:, b2[0]]
    x[b].sum(0)
    x[k % 1]
    x[k % 1, 0]
    x[:, k % 1]
    x[:, :, k % 1]
    x[:, k % 1, k % 1]
    x[k % 1, :, k % 1]
    x[k % 1, k % 1]
    x[k % 1, 0, k % 1]
    x[0, :, k % 1]
    x[0, k % 1]
    x[:, 0, k % 1]
    x[k % 1, None]
    x[None, k % 1]
    x[..., k % 1]
    x[k % 1, ..., 0]
    x[o % 1]
    x[o % 1, o % 1]
    x[:, o % 1]
    x[[0]]
    x[:, [0, 0, 0]]
    x[[0, 0], [0, 0]]
    x[:, [0, 0], [0, 0]]
    x[[[0, 0]]]
    x[torch.tensor([0, 0])]
    x[torch.arange(x.size(0)), i * 0]
    x[torch.arange(x.size(0)), :, i * 0]
    x[torch.arange(x.size(0))[:, None], torch.arange(x.size(1))]
    x[i * 0][:, i * 0]
    x[(0, 0)]
    x[slice(0, 1)]
    x[:, slice(None), 0]
    x[i.new_zeros(3)]
    x[..., -1].unsqueeze(-1)
    x[0][0][0]
    x[0:0]
    x[:, 2:2]
    x[None, None].shape[1]
    x[0] = 1.0; x
    x[:, 0] = 0; x
    x[0] = v; x
    x[:] = v; x
    x[:, 1:] = x[:, :-1]; x
    x[..., 0] = 1; x
    x[b] = 0; x
    x[b2] = 1.0; x
    x[b] = v; x
    x[i * 0] = v; x
    x[0, 0, 0] = 3.0; x
    x[:, :, :1] = v[:, :1]; x
    x[k % 1] = 2.0; x
    x[x > 0.5] = 0.0; x
    x[None] = 1.0; x
    x[:1] += 1; x
    x[:, 0] *= 2; x
    x[..., -1:] = v[:, -1:]; x
    x[torch.arange(x.size(0)), 0] = 1.0; x
    x[0] = v[:1]; x
    del v; x
    [row.sum() for row in x[:2]]
    list(x[0, 0, :1])
    len(x[0])
    [a.shape for a in v[:2]]
    x.__getitem__(0)
    x[0].fill_(1)
    x[0, :, 0].mul_(2)

x: float32[4, 5, 6]; y: float32[10]
    x[1:3]
    x[1:10]
    x[-2:]
    x[-10:]
    x[::2, ::3, 1::2]
    x[3:1]
    x[:, 1:-1:2]
    x[:, -3:-1]
    x[3]
    x[:, -5]
    x[torch.tensor([[0, 1], [2, 3]])]
    x[torch.tensor([0, 1]), torch.tensor([2, 3])]
    x[torch.tensor([0, 1]), :, torch.tensor([2, 3])]
    x[torch.tensor([[0], [1]]), torch.tensor([2, 3])]
    x[[0, 1, 2], 1:3]
    x[1:3, [0, 1, 2]]
    x[1:3, [0, 1, 2], None]
    x[0, [1, 2], :]
    x[..., [1, 2], 0]
    x[0, :, [1, 2]]
    x[:, 0, [1, 2]]
    x[[0, 1], None, 0]
    x[torch.tensor(1)]
    x[torch.tensor([True, False, True, False])]
    x[torch.tensor([True, False, True, False]), torch.tensor([1, 2])]
    x[:, torch.tensor([True] * 5)]
    x[x.sum((1, 2)) > 3]
    x[torch.tensor([0, 1], dtype=torch.int32)]
    x[torch.tensor([0, 1], dtype=torch.uint8).bool().nonzero().flatten()]
    y[:3]
    y[-3:]
    y[::4]
    y[[1, 2]]
    y[torch.tensor(3)]
    y[2:8:2] = torch.zeros(3); y
    y[[1, 2]] = torch.tensor([1.0, 2.0]); y
    y[y > 0.5] = y[y > 0.5] * 2; y
    x[0, 1] = torch.arange(6); x
    x[:, 0] = torch.zeros(4, 6); x
    x[:, [0, 1]] = torch.zeros(4, 2, 6); x
    x[[0, 1], [0, 1]] = torch.zeros(2, 6); x
    x[1:3, 2:4] = 0; x
    x[..., 2] = torch.zeros(5); x
    x[0] = torch.zeros(1, 5, 6); x
"""
