"""Rotor matrices in torch, differentiable, exactly as the RGU's algebra has them, for one 2^n chunk.

Two forms: `definition`, the float64 sum over blades that checks everything, and `matrices`, which trains. The
second is the Walsh-Hadamard form. In it a sum of terms of one parity is a matrix A = Σ r' s'ᵀ over even blades,
sent through a fixed signed permutation, one Hadamard matrix and another signed permutation; so any number of
terms costs one matrix product.
"""
import functools
import math

import torch

parity = lambda x: bin(x).count("1") & 1


def planes(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def swaps(a, b):
    """The exponent s(A, B): sgn(A, B) = (-1)^s."""
    s, a = 0, a >> 1
    while a:
        s ^= parity(a & b)
        a >>= 1
    return s


def definition(r_angles, s_angles, odd, n=8):
    """M[I][J] in float64 by rgu.md's formula, from the geometric product alone."""
    d = 1 << n
    blade = torch.arange(d)
    sgn = torch.tensor([[(-1.0) ** swaps(a, b) for b in range(d)] for a in range(d)], dtype=torch.float64)

    def product(x, y):
        out = torch.zeros(d, dtype=torch.float64)
        for a in range(d):
            out[a ^ blade] += sgn[a] * x[a] * y
        return out

    def element(**components):
        x = torch.zeros(d, dtype=torch.float64)
        for name, value in components.items():
            x[int(name[1:])] = value
        return x

    def rotor(angles):
        r = element(e0=1.0)
        for (i, j), t in zip(planes(n), angles.tolist()):
            r = product(r, element(**{"e0": math.cos(t), f"e{1 << i | 1 << j}": math.sin(t)}))
        return r

    r = product(rotor(r_angles), element(e1=1.0)) if odd else rotor(r_angles)
    grade = lambda a: bin(a).count("1")
    s = rotor(s_angles) * torch.tensor([(-1.0) ** (grade(a) * (grade(a) - 1) // 2) for a in range(d)])
    i, j = blade[:, None], blade[None, :]
    return sum(r[k] * s[k ^ i ^ j] * sgn[k, j] * sgn[k ^ j, k ^ i ^ j] for k in range(d))


@functools.cache
def blades(n, odd):
    """Blade K of each compact index k (K without its top bit, which the parity implies)."""
    return [k | ((parity(k) ^ odd) << (n - 1)) for k in range(1 << (n - 1))]


@functools.cache
def plane_tables(n):
    """For each plane, last first: the partner index and the sign of the left product by e_i e_j."""
    out = []
    for i, j in reversed(planes(n)):
        m = 1 << i | 1 << j
        partner = [(k ^ m) & ((1 << (n - 1)) - 1) for k in range(1 << (n - 1))]
        sign = [(-1.0) ** swaps(m, b ^ m) for b in blades(n, 0)]
        out.append((torch.tensor(partner), torch.tensor(sign)[:, None]))
    return out


class Expand(torch.autograd.Function):
    """angles [P, B] -> even components of the rotor [2^(n-1), B]. The backward walks the planes back by their
    inverses instead of storing them."""

    @staticmethod
    def forward(ctx, angles, n):
        c, s = angles.cos(), angles.sin()
        x = torch.zeros(1 << (n - 1), angles.shape[1], dtype=angles.dtype)
        x[0] = 1
        for p, (partner, sign) in enumerate(plane_tables(n)):
            p = angles.shape[0] - 1 - p
            x = c[p] * x + (sign.to(x.dtype) * x[partner]) * s[p]
        ctx.save_for_backward(c, s, x)
        ctx.n = n
        return x

    @staticmethod
    def backward(ctx, g):
        c, s, x = ctx.saved_tensors
        grad = torch.empty_like(c)
        for p, (partner, sign) in enumerate(reversed(plane_tables(ctx.n))):
            turn = lambda y: sign.to(y.dtype) * y[partner]
            bx = turn(x)
            grad[p] = (g * bx).sum(0)
            x, g = c[p] * x - s[p] * bx, c[p] * g - s[p] * turn(g)
        return grad, None


class Permute(torch.autograd.Function):
    """x [B, S] -> x[:, index] · sign, each source used `len(back)` times; `back` are the inverse gathers."""

    @staticmethod
    def forward(ctx, x, index, sign, back):
        ctx.tables = sign, back
        return x[:, index] * sign

    @staticmethod
    def backward(ctx, g):
        sign, back = ctx.tables
        g = g * sign
        return sum(g[:, b] for b in back), None, None, None


def inverse(index, times):
    order = torch.argsort(index, stable=True).view(-1, times)
    return [order[:, t].contiguous() for t in range(times)]


@functools.cache
def spread_tables(n, odd):
    """A[k][k'] of one parity class -> rows M of the transform (one row a blade M of that parity)."""
    low = (1 << (n - 1)) - 1
    index, sign = [], []
    for m in blades(n, odd):
        for k, blade in enumerate(blades(n, odd)):
            index.append(k * (low + 1) + ((k ^ m) & low))
            sign.append((-1.0) ** parity(blade & below(n, m)))
    index = torch.tensor(index)
    return index, torch.tensor(sign), inverse(index, 1)


def below(n, m):
    """g(M): g_i = XOR of M_j over j < i."""
    return sum(parity(m & ((1 << i) - 1)) << i for i in range(n))


@functools.cache
def cell_tables(n):
    """Results of both classes' transforms -> W[I][J]; every result is used at J and at ~J."""
    half, d = 1 << (n - 1), 1 << n
    index, sign = [], []
    for i in range(d):
        for j in range(d):
            m, flip = i ^ j, j >> (n - 1)
            odd, g = parity(m), below(n, m)
            u = (j ^ (d - 1) if flip else j) & (half - 1)
            index.append((odd * half + (m & (half - 1))) * half + u)
            sign.append((-1.0) ** (parity(u & g) + odd * parity(u) + flip * (parity(g) + odd * (n + 1))))
    index = torch.tensor(index)
    return index, torch.tensor(sign), inverse(index, 2)


@functools.cache
def hadamard(n):
    return torch.tensor([[(-1.0) ** parity(a & b) for b in range(1 << n)] for a in range(1 << n)])


def matrices(angles, gain, odd, n=8):
    """angles [B, T, 2, P], gain [B, T], odd: one 0/1 a term -> W [B, 2^n, 2^n] = Σ_t gain · M."""
    b, t, _, p = angles.shape
    half = 1 << (n - 1)
    x = Expand.apply(angles.permute(3, 2, 0, 1).reshape(p, 2 * b * t), n).view(half, 2, b, t)
    r, s = x[:, 0].permute(1, 2, 0), x[:, 1].permute(1, 2, 0)  # [B, T, half]
    cast = lambda table: (table[0], table[1].to(x.dtype), table[2])
    pair = lambda k: bin(k).count("1") * (bin(k).count("1") - 1) // 2
    s = s * torch.tensor([(-1.0) ** pair(k) for k in blades(n, 0)], dtype=x.dtype)
    parts = []
    for o in (0, 1):
        pick = [i for i, v in enumerate(odd) if v == o]
        if not pick:
            parts.append(torch.zeros(b, half * half, dtype=x.dtype))
            continue
        ro = r[:, pick]
        if o:  # r e_0: the component of K moves to K ^ 1, with the sign of e_K e_0
            index = torch.arange(half) ^ 1
            ro = ro[..., index] * torch.tensor([(-1.0) ** swaps(k ^ 1, 1) for k in blades(n, 1)], dtype=x.dtype)
        ro = ro * torch.tensor([(-1.0) ** pair(k) for k in blades(n, o)], dtype=x.dtype)
        a = (ro * gain[:, pick, None]).mT @ s[:, pick]
        v = Permute.apply(a.flatten(1), *cast(spread_tables(n, o))).view(b * half, half) @ hadamard(n - 1).to(x.dtype)
        parts.append(v.view(b, half * half))
    return Permute.apply(torch.cat(parts, dim=1), *cast(cell_tables(n))).view(b, 1 << n, 1 << n)


def check(n=4, terms=3, seed=0):
    """Largest difference to the definition, and of the gradient to finite differences."""
    g = torch.Generator().manual_seed(seed)
    count = n * (n - 1) // 2
    angles = torch.rand(1, terms, 2, count, generator=g, dtype=torch.float64) * 6 - 3
    gain = torch.randn(1, terms, generator=g, dtype=torch.float64)
    odd = [t % 2 for t in range(terms)]
    want = sum(gain[0, t] * definition(*angles[0, t], odd[t], n) for t in range(terms))
    difference = (matrices(angles, gain, odd, n)[0] - want).abs().max().item()
    torch.autograd.gradcheck(lambda a, c: matrices(a, c, odd, n), (angles.requires_grad_(), gain.requires_grad_()))
    return difference


if __name__ == "__main__":
    for n, terms in ((3, 1), (4, 1), (4, 2), (4, 5)):
        print(f"n {n}, {terms} terms: largest difference to the definition {check(n, terms):.1e}, gradient checked")
    g = torch.Generator().manual_seed(1)
    angles = torch.rand(2, 28, generator=g, dtype=torch.float64) * 6 - 3
    for odd in (0, 1):
        w = matrices(angles[None, None], torch.ones(1, 1, dtype=torch.float64), [odd])[0]
        print(f"n 8, odd {odd}: {(w - definition(*angles, odd)).abs().max().item():.1e}")
