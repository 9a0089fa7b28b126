"""Trees and graphs in arrays of indices."""

# mypy: ignore-errors

import numpy as np

from .program import Program, floats, lister, real, whole

PROGRAMS: list[Program] = []
program = lister(PROGRAMS)
TREE = {"left": "int64[n]", "right": "int64[n]", "value": "float32[n]"}


@program((whole(1, -1, -1), whole(2, -1, -1), real(1, 2, 3)), (whole(-1), whole(-1), real(4)),
         (whole(-1, 2, -1), whole(1, -1, -1), real(1, 2, 3)), **TREE)  # fmt: skip
def tree_sum(left, right, value):
    total = 0.0
    stack = [0]
    while stack:
        node = stack.pop()
        if node < 0:
            continue
        total += float(value[node])
        stack.append(int(left[node]))
        stack.append(int(right[node]))
    return total


@program((whole(1, -1, -1), whole(2, -1, -1), real(5, 2, 8), 8.0),
         (whole(1, -1, -1), whole(2, -1, -1), real(5, 2, 8), 1.0),
         (whole(-1), whole(-1), real(4), 4.0), wanted="float", **TREE)  # fmt: skip
def tree_find(left, right, value, wanted):
    node = 0
    steps = 0
    while node >= 0 and value[node] != wanted:
        node = left[node] if wanted < value[node] else right[node]
        steps += 1
    return node, steps


@program((whole(1, 3, -1, -1), whole(2, -1, -1, -1), real(1, 2, 3, 4)),
         (whole(-1), whole(-1), real(4)), **TREE)  # fmt: skip
def breadth_first(left, right, value):
    queue = [0]
    seen = []
    while len(queue) > 0:
        node = queue.pop(0)
        seen.append(value[node])
        for child in (left[node], right[node]):
            if child >= 0:
                queue.append(int(child))
    return np.stack(seen)


@program((whole(0, 0, 1, 1), floats(4, 2)), (whole(0), floats(1, 2)),
         parent="int64[n]", x="float32[n, d]")  # fmt: skip
def tree_states(parent, x):
    h = np.zeros_like(x)
    for i in range(len(parent)):
        if i == 0:
            h[i] = np.tanh(x[i])
        else:
            h[i] = np.tanh(x[i] + h[parent[i]])
    return h


@program((np.array([[0, 1, 4], [1, 0, 2], [4, 2, 0]], np.float32), 2),
         (np.array([[0, 9], [9, 0]], np.float32), 0), w="float32[n, n]", goal="int")  # fmt: skip
def dijkstra(w, goal):
    n = len(w)
    distance = np.full(n, np.inf, dtype=np.float32)
    done = np.zeros(n, dtype=bool)
    distance[0] = 0
    for _ in range(n):
        here, least = -1, np.inf
        for i in range(n):
            if not done[i] and distance[i] < least:
                here, least = i, distance[i]
        if here == goal:
            break
        done[here] = True
        for j in range(n):
            if distance[here] + w[here, j] < distance[j]:
                distance[j] = distance[here] + w[here, j]
    return distance[goal]


@program((whole(0, 1, 3), whole(1, 2, 4), 5), (whole(0), whole(0), 2),
         (whole(0, 1, 0), whole(1, 2, 2), 3), a="int64[e]", b="int64[e]", n="int")  # fmt: skip
def components(a, b, n):
    parent = list(range(n))
    groups = n
    for k in range(len(a)):
        i, j = int(a[k]), int(b[k])
        while parent[i] != i:
            i = parent[i]
        while parent[j] != j:
            j = parent[j]
        if i != j:
            parent[j] = i
            groups -= 1
    return groups, parent


@program((np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], np.int64),),
         (np.array([[0, 1], [1, 0]], np.int64),), edges="int64[n, n]")  # fmt: skip
def topological(edges):
    n = len(edges)
    waiting = edges.sum(axis=0)
    order = []
    ready = [i for i in range(n) if waiting[i] == 0]
    while ready:
        node = ready.pop()
        order.append(node)
        for j in range(n):
            if edges[node, j] > 0:
                waiting[j] = waiting[j] - 1
                if waiting[j] == 0:
                    ready.append(j)
    return len(order) == n, order


@program((whole(2, -1, -3, -4, 1), real(1, 2, 3, 4)), (whole(1), real(7, 1, 1, 1)),
         ops="int64[n]", values="float32[4]")  # fmt: skip
def stack_machine(ops, values):
    # positive numbers push a value; -1 negates, -3 adds, -4 multiplies
    stack = [float(values[0])]
    for op in ops:
        if op > 0:
            stack.append(float(values[op]))
        elif op == -1:
            stack[-1] = -stack[-1]
        else:
            top = stack.pop()
            if op == -3:
                stack.append(stack.pop() + top)
            else:
                stack.append(top * 2)
    return sum(stack)
