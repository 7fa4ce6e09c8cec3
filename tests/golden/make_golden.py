#!/usr/bin/env python3
"""Writes the golden files of this folder: what JAX and PyTorch compute, for the test_parity programs.

    python -m venv v && v/bin/pip install jax==0.10.2 torch numpy
    v/bin/python make_golden.py [random|optimizers|vit|base ...]    (default: all)

random.safetensors      streams of jax.random with its defaults (threefry2x32, partitionable). A tensor's name is
                        the call: "uniform 42 -2 3.5 f32[3,5]" is uniform(key(42), (3, 5), float32, -2, 3.5).
optimizers.safetensors  updates by the papers' formulas in numpy's float64, on gradients that noise() gives.
vit.safetensors         a small ViT under the names of Hugging Face's ViTForImageClassification;
vit_gradients...        its logits, loss and gradients in float64, by PyTorch;
vit_sgd... and others   its weights after 20 steps and the loss of each step.
base.safetensors        ViT-Base/16 at 224 with weights that noise() gives: loss, logits, norms of the gradients.
"""
import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 20


def write(name, tensors, **metadata):
    """A safetensors file, the widest types first, so that every tensor is aligned."""
    codes = {"bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int32": "I32",
             "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64"}
    arrays = {k: np.asarray(v, order="C") for k, v in tensors.items()}
    order = sorted(arrays, key=lambda k: (-arrays[k].dtype.itemsize, k))
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for k in order:
        a = arrays[k]
        header[k] = {"dtype": codes[a.dtype.name], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, name + ".safetensors"), "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(arrays[k].tobytes() for k in order))
    print(name, len(text) + 8 + at, "bytes")


def noise(seed, count):
    """count float32 in [-1, 1), multiples of 2^-23: golden.h has the same function."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B1) + np.uint32(seed) * np.uint32(0x85EBCA77)
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
        x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)


# --- jax.random ---


def make_random():
    import jax
    import jax.numpy as jnp

    out = {}
    text = {jnp.dtype("float16"): "f16", jnp.dtype(jnp.bfloat16): "bf16", jnp.dtype("float32"): "f32",
            jnp.dtype("float64"): "f64", jnp.dtype("uint8"): "u8", jnp.dtype("uint16"): "u16", jnp.dtype("uint32"): "u32",
            jnp.dtype("uint64"): "u64"}

    def put(call, dtype, shape, value):
        tail = (text[jnp.dtype(dtype)] if dtype else "") + str(list(shape)).replace(" ", "")
        out[f"{call} {tail}"] = np.asarray(value)

    def streams(dtypes, kinds):
        for seed, shapes in ((0, [(), (1,), (3, 5)]), (42, [(2,), (7,), (2, 3, 4), (257,), (0, 3)]), (4294967295, [(33,)])):
            key = jax.random.key(seed)
            for shape in shapes:
                for d in dtypes:
                    if d.startswith("u"):
                        put(f"bits {seed}", d, shape, jax.random.bits(key, shape, d))
                        continue
                    d = jnp.dtype(getattr(jnp, d))
                    put(f"uniform {seed} 0 1", d, shape, jax.random.uniform(key, shape, d))
                    put(f"uniform {seed} -2 3.5", d, shape, jax.random.uniform(key, shape, d, -2, 3.5))
                    put(f"normal {seed}", d, shape, jax.random.normal(key, shape, d))
                    if d.itemsize >= 4:
                        put(f"truncated_normal {seed} -2 2", d, shape, jax.random.truncated_normal(key, -2, 2, shape, d))
                        put(f"truncated_normal {seed} -0.5 3", d, shape, jax.random.truncated_normal(key, -0.5, 3, shape, d))
                if kinds:
                    for p in (0, 0.3, 0.9, 1):
                        put(f"bernoulli {seed} {p}", None, shape, jax.random.bernoulli(key, np.float32(p), shape))

    # operation by operation: compiled as one, XLA contracts and keeps excess precision as the processor likes
    jax.config.update("jax_disable_jit", True)
    streams(("uint8", "uint16", "uint32", "float16", "bfloat16", "float32"), True)
    for seed in (0, 1, 42, 4294967295):
        key = jax.random.key(seed)
        data = jax.random.key_data
        put(f"key {seed}", None, (2,), data(key))
        for n in (1, 2, 3, 8):
            put(f"split {seed}", None, (n, 2), data(jax.random.split(key, n)))
        for n in (0, 1, 7, 4294967295):
            put(f"fold_in {seed} {n}", None, (2,), data(jax.random.fold_in(key, np.uint32(n))))
        for n in (1, 2, 10, 100) + ((3000,) if seed == 42 else ()): # 3000: two rounds of sorting
            put(f"permutation {seed}", None, (n,), jax.random.permutation(key, n).astype(np.int32))
    jax.config.update("jax_enable_x64", True)
    streams(("uint64", "float64"), False)
    for seed in (4294967296, 81985529216486895, 18446744073709551615):
        put(f"key {seed}", None, (2,), jax.random.key_data(jax.random.key(np.uint64(seed))))
    jax.config.update("jax_enable_x64", False)
    write("random", out, jax=jax.__version__)


# --- optimizers ---


def update(kind, p, g, s, t, lr, o):
    """One step on one array in float64; t counts from 1. Returns the new p and state."""
    wd = o["decay"]
    if kind in ("sgd", "adam"):
        g = g + wd * p
    if kind == "sgd":
        if not o["momentum"]:
            return p - lr * g, s
        v = o["momentum"] * s[0] + g
        return p - lr * (g + o["momentum"] * v if o["nesterov"] else v), [v]
    if kind == "lion":
        c = np.sign(o["beta1"] * s[0] + (1 - o["beta1"]) * g)
        return p - lr * (c + wd * p), [o["beta2"] * s[0] + (1 - o["beta2"]) * g]
    m = o["beta1"] * s[0] + (1 - o["beta1"]) * g
    v = o["beta2"] * s[1] + (1 - o["beta2"]) * g * g
    d = (m / (1 - o["beta1"]**t)) / (np.sqrt(v / (1 - o["beta2"]**t)) + o["eps"])
    return p - lr * (d + (wd * p if kind == "adamw" else 0)), [m, v]


def make_optimizers():
    base = {"momentum": 0, "nesterov": 0, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "decay": 0, "clip": 0}
    cases = {"sgd": {}, "sgd decay": {"decay": 0.1}, "sgd momentum": {"momentum": 0.9},
             "sgd nesterov": {"momentum": 0.9, "nesterov": 1, "decay": 0.01}, "sgd clip": {"clip": 0.5, "momentum": 0.5},
             "adam": {}, "adam decay": {"decay": 0.1}, "adamw": {"decay": 0.1}, "adamw clip": {"clip": 1, "decay": 0.05, "beta2": 0.95},
             "lion": {"beta2": 0.99}, "lion decay": {"beta2": 0.99, "decay": 0.1}}
    shapes, out = [(5, 7), (13,), ()], {}
    for name, given in cases.items():
        o, kind, lr = {**base, **given}, name.split()[0], 0.05
        p = [noise(100 + i, int(np.prod(s))).reshape(s).astype(np.float64) for i, s in enumerate(shapes)]
        s = [[np.zeros(x.shape)] * 2 for x in p]
        for t in range(1, STEPS + 1):
            g = [noise(1000 * i + t, x.size).reshape(x.shape).astype(np.float64) for i, x in enumerate(p)]
            norm = np.sqrt(sum((x * x).sum() for x in g))
            if o["clip"] and norm > o["clip"]:
                g = [x * (o["clip"] / norm) for x in g]
            for i in range(len(p)):
                # the vector takes no weight decay
                p[i], s[i] = update(kind, p[i], g[i], s[i], t, lr, {**o, "decay": o["decay"] if i != 1 else 0})
        for i, x in enumerate(p):
            out[f"{name}/{i}"] = x
        out[f"{name}/options"] = np.array([o[k] for k in base], np.float64)
    write("optimizers", out, options=" ".join(base))


# --- Vision Transformers ---

SMALL = {"image": 16, "channels": 3, "patch": 4, "width": 24, "depth": 2, "heads": 4, "mlp": 48, "classes": 10}
BASE = {"image": 224, "channels": 3, "patch": 16, "width": 768, "depth": 12, "heads": 12, "mlp": 3072, "classes": 1000}


def names(c):
    """Hugging Face's names and shapes."""
    w, p = c["width"], c["patch"]
    out = {"vit.embeddings.cls_token": (1, 1, w), "vit.embeddings.position_embeddings": (1, (c["image"] // p)**2 + 1, w),
           "vit.embeddings.patch_embeddings.projection.weight": (w, c["channels"], p, p),
           "vit.embeddings.patch_embeddings.projection.bias": (w,)}
    for i in range(c["depth"]):
        for name, shape in (("layernorm_before", (w,)), ("attention.attention.query", (w, w)), ("attention.attention.key", (w, w)),
                            ("attention.attention.value", (w, w)), ("attention.output.dense", (w, w)), ("layernorm_after", (w,)),
                            ("intermediate.dense", (c["mlp"], w)), ("output.dense", (w, c["mlp"]))):
            out[f"vit.encoder.layer.{i}.{name}.weight"] = shape
            out[f"vit.encoder.layer.{i}.{name}.bias"] = shape[:1]
    out.update({"vit.layernorm.weight": (w,), "vit.layernorm.bias": (w,), "classifier.weight": (c["classes"], w),
                "classifier.bias": (c["classes"],)})
    return out


def weights(c, scale, first):
    """Tensor k is scale * noise(first + k); scales of norms are 1 + noise / 8."""
    out = {}
    for k, (name, shape) in enumerate(names(c).items()):
        x = noise(first + k, int(np.prod(shape))).reshape(shape)
        norm = "layernorm" in name and name.endswith("weight")
        out[name] = np.float32(1) + x * np.float32(0.125) if norm else x * np.float32(scale)
    return out


def logits(c, w, x):
    """x [B, C, H, W]."""
    import torch.nn.functional as F
    import torch

    def linear(name, h):
        return F.linear(h, w[name + ".weight"], w[name + ".bias"])

    def norm(name, h):
        return F.layer_norm(h, h.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-12)

    e = "vit.embeddings."
    h = F.conv2d(x, w[e + "patch_embeddings.projection.weight"], w[e + "patch_embeddings.projection.bias"], c["patch"])
    h = h.flatten(2).transpose(1, 2)
    h = torch.cat([w[e + "cls_token"].expand(len(x), -1, -1), h], 1) + w[e + "position_embeddings"]
    for i in range(c["depth"]):
        n = f"vit.encoder.layer.{i}."
        a = norm(n + "layernorm_before", h)
        q, k, v = (linear(n + "attention.attention." + s, a).unflatten(-1, (c["heads"], -1)).transpose(1, 2)
                   for s in ("query", "key", "value"))
        p = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1]**0.5, -1)
        h = h + linear(n + "attention.output.dense", (p @ v).transpose(1, 2).flatten(2))
        h = h + linear(n + "output.dense", F.gelu(linear(n + "intermediate.dense", norm(n + "layernorm_after", h))))
    return linear("classifier", norm("vit.layernorm", h)[:, 0])


def batch(c, size, step):
    """Images [B, C, H, W] and labels; the test makes them as [B, H, W, C]."""
    import torch

    n = c["image"]
    x = noise(5000 + step, size * n * n * c["channels"]).reshape(size, n, n, c["channels"])
    labels = [(step * size + i) * 7 % c["classes"] for i in range(size)]
    return torch.tensor(x, dtype=torch.float64).permute(0, 3, 1, 2), torch.tensor(labels)


def tensors(w):
    import torch

    return {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in w.items()}


def make_vit():
    import torch
    import torch.nn.functional as F

    c, start = SMALL, weights(SMALL, 0.25, 0)
    write("vit", start)
    w = tensors(start)
    x, y = batch(c, 4, 0)
    z = logits(c, w, x)
    loss = F.cross_entropy(z, y)
    loss.backward()
    out = {k: v.grad.numpy().astype(np.float32) for k, v in w.items()}
    write("vit_gradients", {**out, "loss": loss.detach().numpy(), "logits": z.detach().numpy()})
    for name, kind, options in (("sgd", torch.optim.SGD, {"lr": 0.05}),
                                ("momentum", torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
                                ("adamw", torch.optim.AdamW, {"lr": 1e-3})):
        w, losses = tensors(start), []
        decay = 0.05 if kind is torch.optim.AdamW else 0
        # weight decay on the matrices of linear layers only
        matrix = [v for k, v in w.items() if v.ndim in (2, 4)]
        other = [v for k, v in w.items() if v.ndim not in (2, 4)]
        opt = kind([{"params": matrix, "weight_decay": decay}, {"params": other, "weight_decay": 0}], **options)
        for step in range(STEPS):
            x, y = batch(c, 4, step)
            loss = F.cross_entropy(logits(c, w, x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        write("vit_" + name, {**{k: v.detach().numpy().astype(np.float32) for k, v in w.items()}, "losses": np.array(losses)},
              torch=torch.__version__)


def make_base():
    import torch
    import torch.nn.functional as F

    w = tensors(weights(BASE, 0.035, 20000))
    x, y = batch(BASE, 1, 0)
    z = logits(BASE, w, x)
    loss = F.cross_entropy(z, y)
    loss.backward()
    out = {k: np.float64(v.grad.norm().item()) for k, v in w.items()}
    write("base", {**out, "loss": loss.detach().numpy(), "logits": z.detach().numpy()[0]}, torch=torch.__version__)


if __name__ == "__main__":
    makers = {"random": make_random, "optimizers": make_optimizers, "vit": make_vit, "base": make_base}
    for which in sys.argv[1:] or makers:
        makers[which]()
