"""Every workload in a size that trains in a moment."""

from typing import Any

TOKENS = {"layers": 2, "width": 48, "heads": 4, "length": 16, "vocabulary": 64}
LLAMA = {**TOKENS, "inner": 96}

SMALL: dict[str, dict[str, Any]] = {
    "alexnet": {"image_size": 80, "n_classes": 10},
    "autoencoder": {},
    "cosmoflow": {"volume": 32, "filters": 4},
    "cosmoflow-paradl": {"volume": 64},
    "gpt": TOKENS,
    "gpt2": TOKENS,
    "gpt2-medium": TOKENS,
    "gpt2-large": TOKENS,
    "gpt2-xl": TOKENS,
    "lenet5": {"padding": "same", "kernel_size": 4},
    "llama-1b": {**LLAMA, "key_heads": 2},
    "llama-7b": {**LLAMA, "key_heads": 4},
    "llama-8b": {**LLAMA, "key_heads": 1},
    "llama-70b": {**LLAMA, "key_heads": 2},
    "mixtral-8x7b": {**LLAMA, "key_heads": 2, "experts": 4},
    "mlp": {},
    "resattnet18": {"volume": 24, "filters": 8},
    "resattnet34": {"volume": 24, "filters": 8},
    "resnet18": {"image_size": 32, "filters": 8},
    "resnet50": {"image_size": 32, "filters": 8},
    "resnet152": {"image_size": 32, "filters": 4},
    "vgg16": {"image_size": 32, "n_classes": 10},
}
