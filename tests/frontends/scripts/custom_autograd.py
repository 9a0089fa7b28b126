"""Functions with gradients of their own: a straight-through quantiser in a VQ-VAE, and checks."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function, gradcheck


class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        sigmoid = torch.sigmoid(x)
        ctx.save_for_backward(x, sigmoid)
        return x * sigmoid

    @staticmethod
    def backward(ctx, grad_output):
        x, sigmoid = ctx.saved_tensors
        return grad_output * (sigmoid * (1 + x * (1 - sigmoid)))


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class MyLinear(nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        super().__init__()
        self.input_features = input_features
        self.output_features = output_features
        self.weight = nn.Parameter(torch.empty(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(output_features))
        else:
            self.register_parameter("bias", None)
        bound = 1 / math.sqrt(input_features)
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return "input_features={}, output_features={}, bias={}".format(
            self.input_features, self.output_features, self.bias is not None
        )


class VectorQuantize(Function):
    @staticmethod
    def forward(ctx, inputs, codebook):
        with torch.no_grad():
            embedding_size = codebook.size(1)
            inputs_size = inputs.size()
            flat = inputs.view(-1, embedding_size)
            codebook_sqr = torch.sum(codebook**2, dim=1)
            inputs_sqr = torch.sum(flat**2, dim=1, keepdim=True)
            distances = torch.addmm(codebook_sqr + inputs_sqr, flat, codebook.t(), alpha=-2.0, beta=1.0)
            _, indices_flat = torch.min(distances, dim=1)
            ctx.mark_non_differentiable(indices_flat)
            codes_flat = torch.index_select(codebook, dim=0, index=indices_flat)
            ctx.save_for_backward(indices_flat, codebook)
            return codes_flat.view(inputs_size), indices_flat

    @staticmethod
    def backward(ctx, grad_output, grad_indices):
        grad_inputs, grad_codebook = None, None
        if ctx.needs_input_grad[0]:
            grad_inputs = grad_output.clone()
        if ctx.needs_input_grad[1]:
            indices, codebook = ctx.saved_tensors
            flat = grad_output.contiguous().view(-1, codebook.size(1))
            grad_codebook = torch.zeros_like(codebook)
            grad_codebook.index_add_(0, indices, flat)
        return grad_inputs, grad_codebook


swish = Swish.apply
vq = VectorQuantize.apply


class VQVAE(nn.Module):
    def __init__(self, dim=32, codes=16, latent=8):
        super().__init__()
        self.encoder = MyLinear(dim, latent)
        self.codebook = nn.Embedding(codes, latent)
        self.codebook.weight.data.uniform_(-1.0 / codes, 1.0 / codes)
        self.decoder = MyLinear(latent, dim, bias=False)

    def forward(self, x):
        z_e = swish(self.encoder(x))
        z_q_st, indices = vq(z_e, self.codebook.weight.detach())
        z_q = torch.index_select(self.codebook.weight, dim=0, index=indices).view_as(z_e)
        return self.decoder(z_q_st), z_e, z_q


def main():
    torch.manual_seed(0)
    data = torch.randn(8, 4, dtype=torch.double, requires_grad=True)
    weight = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    assert gradcheck(LinearFunction.apply, (data, weight), eps=1e-6, atol=1e-4)
    model = VQVAE()
    print(model)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for step in range(20):
        x = torch.randn(64, 32)
        optimizer.zero_grad()
        x_tilde, z_e, z_q = model(x)
        loss_recons = F.mse_loss(x_tilde, x)
        loss_vq = F.mse_loss(z_q, z_e.detach())
        loss_commit = F.mse_loss(z_e, z_q.detach())
        loss = loss_recons + loss_vq + 0.25 * loss_commit
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
            print(step, loss.item(), norm.item())


if __name__ == "__main__":
    main()
