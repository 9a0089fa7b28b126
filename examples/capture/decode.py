"""Greedy decoding until an end token: a loop of plain Python that runs as one graph.

    python examples/capture/decode.py

needs PyTorch (``pip install 'hagane[torch]'``). The number of steps depends on what the model says;
the loop becomes a Loop of the graph, and Python is left once a call.
"""

import time

import torch
from torch import nn

import hagane

END = 0


class Decoder(nn.Module):
    def __init__(self, tokens: int, width: int):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, tokens)

    def forward(self, state, limit):
        token = torch.ones(state.shape[0], dtype=torch.int64)
        written = torch.zeros(state.shape[0], 0, dtype=torch.int64)
        while written.shape[1] < limit and not (token == END).all():
            state = self.cell(self.embedding(token), state)
            token = self.head(state).argmax(1)
            written = torch.cat([written, token[:, None]], 1)
        return {"tokens": written, "state": state}


def main() -> None:
    torch.manual_seed(0)
    model = Decoder(tokens=50, width=32).eval()
    with torch.no_grad():
        model.head.bias[END] += 0.5  # so that some end early
    compiled = hagane.compile(model, fullgraph=True, dynamic={"state": {0: "batch"}})
    with torch.no_grad():
        for batch in (1, 4, 7):
            state = torch.randn(batch, 32)
            found = compiled(state, 40)
            expected = model(state, 40)
            assert torch.equal(found["tokens"], expected["tokens"])
            assert torch.allclose(found["state"], expected["state"], atol=1e-5)
            print(f"batch {batch}: {found['tokens'].shape[1]} steps")
        for name, run in (("PyTorch", model), ("hagane", compiled)):
            start = time.perf_counter()
            for _ in range(5):
                run(state, 40)
            print(f"{name}: {(time.perf_counter() - start) / 5 * 1e3:.2f} ms a call")
    for line in compiled.captures:
        print(line)


if __name__ == "__main__":
    main()
