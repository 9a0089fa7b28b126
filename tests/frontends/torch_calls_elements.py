"""Calls of PyTorch that work element by element."""

ELEMENTS = """
x: float32[n=2, c=3]; y: float32[c=3]; i: int64[n=2, c=3]; b: bool[n=2, c=3]; h: float16[n=2, 1]
    x + y
    x - h
    x * i
    x / i
    i / i
    i // 2
    i // i
    x // 2
    x % 2
    i % 3
    x ** 2
    2 ** x
    i ** 2
    2 + x
    1 - x
    3 * i
    3.5 * i
    1 / x
    1 / i
    2 // i
    -x
    +x
    abs(x)
    ~b
    ~i
    b & b
    b | (x > 0.5)
    b ^ b
    i & 3
    i << 1
    i >> 1
    x == y
    x != 1
    x < i
    x <= i
    i >= 2.5
    b == True
    x > h
    x.gt(0.5)
    x.lt(y)
    x.ge(0)
    x.le(1)
    x.eq(y)
    x.ne(y)
    torch.eq(x, y)
    torch.greater(x, y)
    torch.less_equal(x, 1)
    torch.not_equal(i, 1)
    x + True
    b + 1
    b + 1.0
    b * b
    b + b
    b * x
    x + 1j
    i + 1.5
    h + 1
    h * 2.5
    h + i
    x.add(y)
    x.add(y, alpha=2)
    torch.add(x, 1)
    torch.sub(x, y)
    torch.subtract(x, y)
    torch.rsub(x, 1)
    torch.mul(x, y)
    x.mul(2)
    torch.div(x, y)
    torch.div(i, 2, rounding_mode='floor')
    torch.div(x, 2, rounding_mode='trunc')
    torch.true_divide(i, 2)
    torch.floor_divide(i, 2)
    torch.remainder(x, 2)
    torch.fmod(i, 2)
    torch.pow(x, 2)
    torch.pow(x > 0, True)
    (x > 0) ** False
    x.pow(0.5)
    i.pow(2)
    torch.float_power(x, 2)
    torch.maximum(x, y)
    torch.minimum(x, i)
    torch.fmax(x, y)
    torch.fmin(x, y)
    x.fmin(y)
    torch.isreal(x)
    x.isreal()
    torch.atan2(x, y)
    torch.hypot(x, y)
    torch.logaddexp(x, y)
    torch.xlogy(i, i)
    torch.copysign(x, y)
    torch.isclose(x, y)
    torch.gcd(i, i)
    torch.lcm(i, i)
    torch.heaviside(x, y)
    torch.nextafter(x, y)
    x.nextafter(y)
    torch.ldexp(x, i)
    torch.lerp(x, y, 0.5)
    x.lerp(y, y)
    torch.addcmul(x, y, y, value=2)
    torch.addcdiv(x, y, y)
    torch.where(b, x, y)
    torch.where(b, x, 0.0)
    torch.where(b, 1, 0)
    torch.where(b, 1.0, 0)
    torch.where(b, i, 0.5)
    torch.where(x > 0.5, x, torch.zeros_like(x))
    x.where(b, y)
    torch.clamp(x, 0, 1)
    x.clamp(min=0)
    x.clamp(max=y)
    i.clamp(0, 2)
    x.clip(0.2, 0.4)
    i.clamp(min=0.5)
    torch.clamp_min(x, 0)
    x.clamp_min(1)
    x.clamp_max(1)
    x.masked_fill(b, float('-inf'))
    x.masked_fill(b, 0)
    torch.masked_fill(x, b, 1.0)
    i.masked_fill(b, 0)
    x.masked_fill(x > 0.5, torch.tensor(0.0))
    x.masked_fill_(b, 0); x
    torch.logical_and(b, x)
    torch.logical_or(b, b)
    torch.logical_not(x)
    x.logical_not()
    torch.logical_xor(b, i)
    torch.bitwise_and(i, i)
    torch.bitwise_xor(i, i)
    torch.bitwise_not(i)
    torch.bitwise_left_shift(i, 2)
    i.bitwise_left_shift(2)
    i.bitwise_right_shift(1)
    torch.bitwise_or(b, b)
    torch.isnan(x)
    x.isnan()
    torch.isinf(x)
    torch.isfinite(i)
    torch.nan_to_num(x)
    torch.signbit(x)
    torch.exp(x)
    torch.exp(i)
    x.exp()
    x.log()
    torch.log1p(x)
    torch.log2(x)
    torch.log10(x)
    torch.expm1(x)
    torch.sqrt(x)
    i.sqrt()
    torch.rsqrt(x)
    x.rsqrt()
    torch.sin(x) + torch.cos(x)
    torch.tan(x)
    torch.asin(x)
    torch.acos(x)
    torch.atan(x)
    torch.sinh(x)
    torch.cosh(x)
    torch.tanh(i)
    x.tanh()
    torch.asinh(x)
    torch.atanh(x)
    torch.sigmoid(x)
    x.sigmoid()
    b.sigmoid()
    torch.erf(x)
    torch.erfc(x)
    torch.erfinv(x)
    torch.lgamma(x)
    torch.digamma(x)
    torch.reciprocal(i)
    torch.square(x)
    i.square()
    torch.abs(i)
    torch.neg(x)
    torch.acosh(x * x + 1)
    torch.absolute(x)
    torch.negative(x)
    torch.positive(x)
    torch.multiply(x, 2)
    torch.divide(x, 3)
    torch.arcsin(x)
    torch.arccos(x)
    torch.arctan(x)
    torch.arcsinh(x)
    torch.arccosh(x * x + 1)
    torch.arctanh(x)
    torch.arctan2(x, x + 1)
    torch.exp2(x)
    torch.fix(x)
    torch.rad2deg(x)
    torch.i0(x)
    torch.isposinf(x)
    torch.isneginf(x)
    torch.logaddexp2(x, x + 1)
    torch.special.expm1(x)
    torch.special.log1p(x * x)
    torch.special.erfc(x)
    torch.special.erfinv(x)
    torch.special.exp2(x)
    torch.special.sinc(x)
    torch.special.digamma(x * x + 1)
    torch.special.psi(x * x + 1)
    torch.special.i0(x)
    torch.special.round(x)
    torch.sign(x)
    torch.sgn(x)
    torch.floor(x)
    torch.ceil(x)
    torch.round(x)
    torch.round(x, decimals=2)
    torch.trunc(x)
    torch.frac(x)
    torch.logit(x)
    torch.logit(x, 0.2)
    x.logit(eps=0.1)
    torch.sinc(x)
    torch.deg2rad(x)
    torch.special.expit(x)
    torch.special.erf(x)
    torch.special.gammaln(x)
    torch.special.log_softmax(x, dim=1)
    torch.special.softmax(x, dim=0)
    torch.special.logsumexp(x, 1)
    torch.special.xlogy(x, y)
    torch.special.i0e(x)
    torch.special.i1(x)
    torch.special.i1e(x)
    torch.special.erfcx(x)
    torch.special.ndtr(x)
    torch.special.ndtri(x.sigmoid())
    torch.special.log_ndtr(x)
    torch.special.logit(x, 0.1)
    torch.special.xlog1py(x, y * y)
    torch.special.zeta(x * x + 1.5, y * y + 1)
    torch.special.bessel_j0(x)
    torch.special.bessel_j1(x)
    torch.special.entr(x)
    torch.special.multigammaln(x + 2, 2)
    torch.mvlgamma(x + 2, 2)
    torch.polygamma(1, x)
    x.polygamma(1)
    torch.conj_physical(x)
    x.conj_physical()
    torch.clone(x)
    x.clone()
    x.detach()
    x.contiguous()
    x.data
    x.float()
    i.float()
    x.double()
    x.half()
    x.bfloat16()
    x.bfloat16().float()
    x.long()
    x.int()
    x.short()
    x.bool()
    x.byte()
    x.char()
    x.to(torch.float64)
    x.to(dtype=torch.int32)
    x.to('cpu')
    x.to(torch.device('cpu'), torch.float16)
    x.to(i)
    x.to('cpu', dtype=torch.float64)
    x.type(torch.int64)
    x.type_as(i)
    x.cpu()
    x.to_dense()
    h.to(x.dtype)
    F.relu(x)
    F.relu(i)
    F.relu(x, inplace=True)
    torch.relu(x)
    x.relu()
    F.leaky_relu(x, 0.2)
    F.leaky_relu(x, negative_slope=0.2)
    F.elu(x)
    F.selu(x)
    F.celu(x)
    F.gelu(x)
    F.gelu(x, approximate='tanh')
    F.silu(x)
    F.mish(x)
    F.softplus(x)
    F.softsign(x)
    F.hardtanh(x, -1, 1)
    F.hardsigmoid(x)
    F.hardswish(x)
    F.relu6(x)
    F.logsigmoid(x)
    F.tanhshrink(x)
    torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15)
    torch.fake_quantize_per_tensor_affine(x, torch.tensor([0.25]), torch.tensor([2], dtype=torch.int32), -4, 4)
    torch.fake_quantize_per_channel_affine(x, y.abs() + 0.1, torch.ones_like(y, dtype=torch.int32), 1, 0, 7)
    F.hardshrink(x)
    F.softshrink(x)
    F.softshrink(x, 0)
    F.hardshrink(x, 1)
    F.threshold(x, 0.1, 0.0)
    F.rrelu(x)
    F.tanh(x)
    F.sigmoid(x)
    F.dropout(x, 0.5)
    F.dropout(x, p=0.1, training=False)
    F.alpha_dropout(x, 0.1)
    F.feature_alpha_dropout(x, 0.1)
    F.alpha_dropout(x, 0.1, training=False)
    F.feature_alpha_dropout(x, 0.1, False)
    torch.alpha_dropout(x, 0.1, False)
    torch.feature_alpha_dropout(x, 0.1, False)
    torch.feature_dropout(x, 0.1, False)
    F.rrelu(x, 0.2, 0.4)
    F.rrelu(x, training=True)
    x.add_(1)
    x.mul_(y)
    x.div_(2)
    x.sub_(y)
    x.clamp_(0, 1)
    x.exp_()
    x.zero_()
    x.fill_(3)
    x.copy_(y)
    x.copy_(other=y)
    x.relu_()
    x.fill_diagonal_(2.0)
    x.gt_(0)
    x.greater_equal_(y)
    x.logical_not_()
    i.ne_(1)
    torch.exp_(x)
    torch.clamp_(x, 0, 1)
    F.elu_(x, 0.5)
    x.sigmoid_()
    x.uniform_(-1, 1)
    x.normal_()
    x += y; x
    x *= 2; x
    x -= i; x
    x /= 2; x
    i += 1; i
    x.requires_grad_(True).shape
    x.is_floating_point()
    i.is_floating_point()
    x.dtype == torch.float32
    x.ndim
    x.dim()
    x.shape[0]
    x.size(-1)
    x.numel()
    x.shape
    x.size()
    len(x)
    x.nelement()
    x.is_cuda
    torch.numel(x)
    torch.is_tensor(x)
    torch.is_floating_point(x)
    torch.is_complex(x)
    x.is_complex()
    x.is_contiguous()
    x.new_zeros(2, 3)
    x.new_ones((2, 3))
    x.new_ones(size=x.size())
    x.new_full((2,), 1.5)
    i.new_full((2,), 7)
    x.new_tensor([1, 2])
    x.new_empty(3)
    i.new_zeros(x.shape)
    x.bernoulli()
    torch.bernoulli(x)
    torch.poisson(x)
    torch.normal(x, x)
    torch.zeros_like(x)
    torch.ones_like(i)
    torch.rand_like(x)
    torch.randn_like(x, dtype=torch.float64)
    torch.empty_like(x)
    torch.full_like(x, 2)
    torch.randint_like(i, 5)
    torch.broadcast_tensors(x, y)
    torch.broadcast_to(y, x.shape)
    torch.broadcast_shapes(x.shape, y.shape)
    torch.allclose(x, x)
    x.allclose(x)
    torch.equal(x, y)
    x.equal(x)
    torch.equal(x, x[:1])
    torch.equal(x, x[0])
    F.glu(torch.cat([x, x], 1), dim=1)
    F.normalize(x, dim=1)
    F.normalize(x, p=2.0, dim=-1, eps=1e-6)
    torch._weight_norm(x, x[:, :1], 0)
    torch._weight_norm(x, x[:1], 1)
    torch._weight_norm(x, x.sum(), -1)
    F.cosine_similarity(x, x)
    F.cosine_similarity(x, y, dim=-1)
    F.pairwise_distance(x, x)
    F.pairwise_distance(x, x, keepdim=True)
    F.prelu(x, torch.tensor([0.2]))
    torch.complex(x, x)
    torch.polar(x, x)
    torch.view_as_real(torch.complex(x, x))
    torch.view_as_complex(torch.stack([x, x], dim=-1))
    torch.complex(x, x).abs()
    torch.complex(x, x).real
    torch.complex(x, x).imag
    torch.angle(x)
    torch.conj(torch.complex(x, x))
    torch.real(torch.complex(x, x))

a: float64[n=2]; u: uint8[n=2]; s: int16[n=2]; j: int32[n=2]; g: bfloat16[n=2]; f: float16[n=2]; d: float64[]; k: int64[]; z: float32[n=2]; o: bool[n=2]; p: bool[]
    a + u
    u + s
    u + j
    s + j
    u * 2
    u * 2.5
    u / 2
    u + k
    z + d
    z * k
    j + k
    j + d
    g + f
    g + z
    g + 1
    f * d
    f + z
    o + u
    o + p
    u == s
    u - 1
    o * 2.5
    d + k
    d * 2
    k + 1
    k * 1.5
    k / 2
    k // 2
    p + 1
    p | o
    j // k
    j % 2
    torch.where(o, u, s)
    torch.where(o, z, d)
    torch.where(o, f, 1.0)
    torch.where(p, z, a)
    torch.maximum(u, s)
    torch.cat([u, j])
    torch.cat([z, a])
    torch.cat([f, g])
    torch.result_type(z, d)  == torch.float32
    torch.promote_types(torch.int32, torch.float16) == torch.float16
    u.float() / 255
    u.to(torch.float32).div(255)
    a.float()
    z.to(a.dtype)
    s.sum()
    o.sum()
    u.prod()
    j.sum(dtype=torch.int32)
    f.sum()
    g.mean()
    o.float().mean()
    torch.exp(g)
    torch.sqrt(u)
    torch.sigmoid(o)
    torch.abs(s)
    torch.clamp(u, 0, 2)
    a[0].item()
    d.item()
    k.item() + 1 > 0
    torch.tensor(3) + z
    torch.tensor(3.0) * j
    torch.tensor([1.5]) * j
    torch.tensor(2) * u
    z * torch.tensor(2.0, dtype=torch.float64)
    torch.pow(u, 2)
    torch.pow(2, z)
    torch.pow(2.5, j)
    torch.pow(2, j)
    torch.atan2(j, j)
    torch.bitwise_or(u, s)
    u & 3
    u << 1
    z // k
    divmod(5, 2)[0] + k
    torch.addcmul(z, z, z)
    torch.dot(z, z)
    torch.outer(z, a.float())
    torch.floor(j)
    torch.round(f)
    torch.complex(z, z) * 2
    torch.complex(z, z) + a
h: float16[4, 4]; c: complex64[4, 4]; i: int64[4, 4]; b: bool[4, 4]; x: float32[4, 4]; u: uint8[4]
    h.masked_fill(b, float("-inf"))
    h.masked_fill(b, -65504.0)
    i.masked_fill(b, -2)
    b.masked_fill(b, 300)
    u.fill_(-1)
    torch.full((2,), -255, dtype=torch.uint8)
    torch.tensor(1e9, dtype=torch.float16)
    F.conv2d(i[None, None], i[None, None, :2, :2])
    F.conv2d(c[None, None], c[None, None, :2, :2], c[0, :1])
    F.conv1d(i[None].int(), i[:2, :, None].int())
    F.conv_transpose2d(i[None, None], i[None, None, :2, :2])
    F.linear(c, c, c[0])
    F.linear(i, i, i[0])
    F.softsign(i)
    F.tanhshrink(i)
    F.pairwise_distance(i, i)
    F.pairwise_distance(c, c)
    F.pairwise_distance(x, x, p=-1.0)
    F.l1_loss(c, c)
    F.l1_loss(i, i, reduction="sum")
    F.triplet_margin_loss(c, c, c)
    F.poisson_nll_loss(i, i)
    F.poisson_nll_loss(i, i, full=True, reduction="none")
    F.cosine_embedding_loss(i, i, i[0])
    F.cosine_embedding_loss(i, x, torch.ones(4), reduction="none")
    F.multilabel_margin_loss(x[0, 0], i[0, 0] * 0)
    torch.mean(i, dtype=torch.float32)
    F.softmax(i, -1, dtype=torch.float16)
    torch.matmul(x, x, out=torch.empty(4, 4))
    torch.add(i, i, out=torch.empty(4, 4))
    torch.cumsum(x, 0, out=i.clone())
    torch.cov(x, fweights=i[0].abs() + 1)
    torch.div(i, 2, rounding_mode="trunc")
    F.pad(b, (1, 1))
    F.interpolate(u[None, None, None], scale_factor=2)
    nn.Softsign()(i)
    nn.MaxPool2d(2)(i[None])
    nn.AvgPool2d(2)(i[None])
    i & 2
    F.rrelu(h)
    x.double() * 1j
    x * 1j
    i * 1j
    x.double() + c[0, 0]
    i - ~b.int()
"""
