"""Modules of several tensors."""

import torch

from . import functional
from .core import SparseConvTensor, _sparse
from .modules import SparseModule

__all__ = ["AddTable", "AddTableMisaligned", "ConcatTable", "JoinTable"]


def _joined(tensors, what, join):
    """One tensor of the features of several."""
    if not tensors:
        raise ValueError(f"{what}: no tensors; give one or more")
    for each in tensors:
        _sparse(tensors[0], what)._check_same(_sparse(each, what), what)
    return tensors[0].replace_feature(join([each.features for each in tensors]))


class JoinTable(SparseModule):
    """The channels of tensors with the same voxels side by side."""

    def forward(self, input: list[SparseConvTensor]) -> SparseConvTensor:
        """Of a list of tensors."""
        return _joined(input, "roost.spconv.JoinTable", lambda features: torch.cat(features, 1))


class AddTable(SparseModule):
    """The sum of tensors with the same voxels."""

    def forward(self, input: list[SparseConvTensor]) -> SparseConvTensor:
        """Of a list of tensors."""
        return _joined(input, "roost.spconv.AddTable", sum)


class AddTableMisaligned(SparseModule):
    """`functional.sparse_add_hash_based` as a module."""

    def forward(self, input: list[SparseConvTensor]) -> SparseConvTensor:
        """Of a list of tensors."""
        return functional.sparse_add_hash_based(*input)


class ConcatTable(SparseModule):
    """A list of the results of several modules."""

    def forward(self, input):
        """Each module's result for the same input."""
        return [module(input) for module in self._modules.values()]

    def add(self, module: torch.nn.Module) -> "ConcatTable":
        """Appends a module."""
        self.add_module(str(len(self._modules)), module)
        return self
