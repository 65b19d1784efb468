#!/usr/bin/env python3
"""Loss and gradients of the test model as PyTorch computes them, in fp64 on the CPU.

    python3 tests/train/pytorch_reference.py > tests/train/pytorch_reference.json

Weights and tokens follow the rules of gradient_test.cpp and host_run.hpp; names are the engine's.
"""
import json

import torch
import torch.nn.functional as F

# Heads of 16: the scale of attention, 1/4, is the same in fp32, in which the engine keeps it, and fp64. The norm's
# epsilon is the engine's: 1e-5 rounded to fp32.
LAYERS, D, H, S, V, FFN, B = 2, 32, 2, 8, 64, 64, 4
KEY_VALUE_HEADS, THETA = 1, 10000.0  # of llama
EPSILON = torch.tensor(1e-5, dtype=torch.float32).item()
MASK = (1 << 64) - 1


def weight(name, shape):
    key = 2166136261
    for letter in name.encode():
        key = ((key ^ letter) * 16777619) & 0xFFFFFFFF
    at = torch.arange(int(torch.tensor(shape).prod()), dtype=torch.int64)
    small = ((at * 7919 + key) % 1009 - 504).double() / 2520
    if "norm" in name and name.endswith(".weight"):
        small = 1 + small
    return small.reshape(shape).requires_grad_()


def token(which, at):
    key = (which * 131 + at // 2) & MASK
    base = (((key * 0x9E3779B97F4A7C15) & MASK) >> 33) % V
    return base if at % 2 == 0 else (3 * base + 1) % V


def parameters(tied):
    shapes = {"embedding.token.weight": (V, D), "embedding.position.weight": (S, D), "head.norm.weight": (D,), "head.norm.bias": (D,)}
    if not tied:
        shapes["head.weight"] = (V, D)
    for layer in range(LAYERS):
        b = f"blocks.{layer}"
        for norm in ("norm_1", "norm_2"):
            shapes[f"{b}.{norm}.weight"] = shapes[f"{b}.{norm}.bias"] = (D,)
        for linear, rows, columns in (("attention.qkv", 3 * D, D), ("attention.projection", D, D), ("mlp.up", FFN, D), ("mlp.down", D, FFN)):
            shapes[f"{b}.{linear}.weight"], shapes[f"{b}.{linear}.bias"] = (rows, columns), (rows,)
    return {name: weight(name, shape) for name, shape in shapes.items()}


def llama_parameters():
    keys = KEY_VALUE_HEADS * D // H
    shapes = {"embedding.token.weight": (V, D), "head.norm.weight": (D,), "head.weight": (V, D)}
    for layer in range(LAYERS):
        b = f"blocks.{layer}"
        shapes[f"{b}.norm_1.weight"] = shapes[f"{b}.norm_2.weight"] = (D,)
        for linear, rows, columns in (("attention.qkv", D + 2 * keys, D), ("attention.projection", D, D), ("mlp.up", 2 * FFN, D), ("mlp.down", D, FFN)):
            shapes[f"{b}.{linear}.weight"] = (rows, columns)
    return {name: weight(name, shape) for name, shape in shapes.items()}


def rotated(x):
    """x is [B, heads, S, K]; halves are paired, as in Hugging Face's Llama."""
    half = x.shape[-1] // 2
    angle = torch.outer(torch.arange(S).double(), THETA ** (-torch.arange(half).double() / half))
    cos, sin = angle.cos(), angle.sin()
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def llama_forward(p, tokens, targets):
    keys = KEY_VALUE_HEADS * D // H
    linear = lambda x, name: F.linear(x, p[name + ".weight"])
    norm = lambda x, name: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * p[name + ".weight"]
    x = p["embedding.token.weight"][tokens]
    for layer in range(LAYERS):
        b = f"blocks.{layer}"
        q, k, v = linear(norm(x, b + ".norm_1"), b + ".attention.qkv").split((D, keys, keys), dim=-1)
        heads = lambda t: t.reshape(B, S, -1, D // H).transpose(1, 2)
        shared = lambda t: t.repeat_interleave(H // KEY_VALUE_HEADS, dim=1)
        attended = F.scaled_dot_product_attention(rotated(heads(q)), shared(rotated(heads(k))), shared(heads(v)), is_causal=True)
        x = x + linear(attended.transpose(1, 2).reshape(B, S, D), b + ".attention.projection")
        gate, up = linear(norm(x, b + ".norm_2"), b + ".mlp.up").split(FFN, dim=-1)
        x = x + linear(F.silu(gate) * up, b + ".mlp.down")
    logits = linear(norm(x, "head.norm"), "head")
    return F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1))


def forward(p, tied, tokens, targets):
    linear = lambda x, name: F.linear(x, p[name + ".weight"], p[name + ".bias"])
    norm = lambda x, name: F.layer_norm(x, (D,), p[name + ".weight"], p[name + ".bias"], EPSILON)
    x = p["embedding.token.weight"][tokens] + p["embedding.position.weight"]
    for layer in range(LAYERS):
        b = f"blocks.{layer}"
        q, k, v = linear(norm(x, b + ".norm_1"), b + ".attention.qkv").split(D, dim=-1)
        heads = lambda t: t.reshape(B, S, H, D // H).transpose(1, 2)
        attended = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=True)
        x = x + linear(attended.transpose(1, 2).reshape(B, S, D), b + ".attention.projection")
        x = x + linear(F.gelu(linear(norm(x, b + ".norm_2"), b + ".mlp.up"), approximate="tanh"), b + ".mlp.down")
    logits = F.linear(norm(x, "head.norm"), p["embedding.token.weight" if tied else "head.weight"])
    return F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1))


def main():
    rows = torch.tensor([[token(which, at) for at in range(S + 1)] for which in range(B)])
    out = {"made_by": "tests/train/pytorch_reference.py", "torch": torch.__version__}
    for network in ("tied", "untied", "llama"):
        p = llama_parameters() if network == "llama" else parameters(network == "tied")
        if network == "llama":
            loss = llama_forward(p, rows[:, :-1], rows[:, 1:])
        else:
            loss = forward(p, network == "tied", rows[:, :-1], rows[:, 1:])
        loss.backward()
        gradients = {}
        for name, parameter in sorted(p.items()):
            flat = parameter.grad.reshape(-1)
            picks = sorted({0, flat.numel() // 3, flat.numel() // 2, flat.numel() - 1})
            gradients[name] = {"norm": flat.norm().item(), "elements": {str(at): flat[at].item() for at in picks}}
        out[network] = {"loss": loss.item(), "gradients": gradients}
    print(json.dumps(out, indent=1))


main()
