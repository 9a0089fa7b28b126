"""Graph networks by hand: GCN and GAT layers over an edge list, for nodes and whole graphs."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn import Parameter


def degree(index, num_nodes):
    out = torch.zeros(num_nodes, device=index.device)
    return out.scatter_add_(0, index, torch.ones_like(index, dtype=out.dtype))


def add_self_loops(edge_index, num_nodes):
    loop = torch.arange(num_nodes, device=edge_index.device)
    return torch.cat([edge_index, loop.unsqueeze(0).repeat(2, 1)], dim=1)


def scatter_softmax(src, index, num_nodes):
    expanded = index.unsqueeze(-1).expand_as(src)
    largest = torch.full((num_nodes, src.size(1)), float("-inf"), device=src.device)
    largest = largest.scatter_reduce(0, expanded, src, reduce="amax", include_self=False)
    out = (src - largest[index]).exp()
    total = torch.zeros(num_nodes, src.size(1), device=src.device).index_add_(0, index, out)
    return out / (total[index] + 1e-16)


class GCNConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self):
        self.lin.reset_parameters()
        self.bias.data.zero_()

    def forward(self, x, edge_index):
        edge_index = add_self_loops(edge_index, x.size(0))
        x = self.lin(x)
        row, col = edge_index
        deg = degree(col, x.size(0))
        deg_inv_sqrt = deg.pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        out = torch.zeros_like(x)
        out.index_add_(0, col, norm.view(-1, 1) * x[row])
        return out + self.bias


class GATConv(nn.Module):
    def __init__(self, in_channels, out_channels, heads=1, concat=True, negative_slope=0.2, dropout=0.0):
        super().__init__()
        self.heads, self.out_channels, self.concat = heads, out_channels, concat
        self.negative_slope, self.dropout = negative_slope, dropout
        self.lin = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = Parameter(torch.empty(1, heads, out_channels))
        nn.init.xavier_uniform_(self.att_src)
        nn.init.xavier_uniform_(self.att_dst)

    def forward(self, x, edge_index):
        N, H, C = x.size(0), self.heads, self.out_channels
        edge_index = add_self_loops(edge_index, N)
        src, dst = edge_index[0], edge_index[1]
        h = self.lin(x).view(N, H, C)
        alpha = (h * self.att_src).sum(-1)[src] + (h * self.att_dst).sum(-1)[dst]
        alpha = scatter_softmax(F.leaky_relu(alpha, self.negative_slope), dst, N)
        alpha = F.dropout(alpha, p=self.dropout, training=self.training)
        out = torch.zeros(N, H, C, device=x.device).index_add_(0, dst, h[src] * alpha.unsqueeze(-1))
        return out.view(N, H * C) if self.concat else out.mean(dim=1)


class Net(nn.Module):
    def __init__(self, num_features, hidden, num_classes, heads=4):
        super().__init__()
        self.conv1 = GCNConv(num_features, hidden)
        self.conv2 = GATConv(hidden, hidden, heads=heads, dropout=0.1)
        self.conv3 = GATConv(hidden * heads, num_classes, heads=1, concat=False)

    def forward(self, x, edge_index):
        x = F.dropout(F.elu(self.conv1(x, edge_index)), p=0.5, training=self.training)
        x = F.elu(self.conv2(x, edge_index))
        return self.conv3(x, edge_index)


class GraphClassifier(nn.Module):
    def __init__(self, num_features, hidden, num_classes):
        super().__init__()
        self.conv = GCNConv(num_features, hidden)
        self.out = nn.Linear(2 * hidden, num_classes)

    def forward(self, x, edge_index, batch, num_graphs):
        h = F.relu(self.conv(x, edge_index))
        total = h.new_zeros(num_graphs, h.size(1)).index_add(0, batch, h)
        mean = total / torch.bincount(batch, minlength=num_graphs).clamp(min=1).unsqueeze(1)
        index = batch.view(-1, 1).expand(-1, h.size(1))
        largest = h.new_zeros(num_graphs, h.size(1)).scatter_reduce_(0, index, h, "amax")
        return F.log_softmax(self.out(torch.cat([mean, largest], dim=1)), dim=-1)


def make_graph(num_nodes, num_features, num_classes, num_edges):
    x = torch.randn(num_nodes, num_features)
    y = torch.randint(num_classes, (num_nodes,))
    edge_index = torch.randint(num_nodes, (2, num_edges))
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    perm = torch.randperm(num_nodes)
    train_mask = torch.zeros(num_nodes, dtype=torch.bool)
    train_mask[perm[: num_nodes // 2]] = True
    return x, y, edge_index, train_mask


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--hidden", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    x, y, edge_index, train_mask = make_graph(args.nodes, 12, 3, 150)
    test_mask = ~train_mask
    model = Net(12, args.hidden, 3)
    optimizer = torch.optim.Adam(
        [
            dict(params=model.conv1.parameters(), weight_decay=5e-4),
            dict(params=list(model.conv2.parameters()) + list(model.conv3.parameters()), weight_decay=0),
        ],
        lr=0.01,
    )
    for epoch in range(1, args.epochs + 1):
        model.train()
        optimizer.zero_grad()
        out = model(x, edge_index)
        loss = F.cross_entropy(out[train_mask], y[train_mask])
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            pred = model(x, edge_index).argmax(dim=-1)
            accs = [int((pred[m] == y[m]).sum()) / int(m.sum()) for m in (train_mask, test_mask)]
        print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Train: {accs[0]:.4f}, Test: {accs[1]:.4f}")
    classifier = GraphClassifier(12, args.hidden, 2)
    batch = torch.arange(4).repeat_interleave(args.nodes // 4)
    scores = classifier(x, edge_index, batch, 4)
    F.nll_loss(scores, torch.tensor([0, 1, 0, 1])).backward()
    print(scores.exp().sum(dim=1))


if __name__ == "__main__":
    main()
