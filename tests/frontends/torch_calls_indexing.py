"""Items of PyTorch's tensors, taken and set."""

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
