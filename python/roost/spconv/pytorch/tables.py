"""Modules of several tensors."""

import torch

from . import functional
from .core import SparseConvTensor
from .modules import SparseModule

__all__ = ["AddTable", "AddTableMisaligned", "ConcatTable", "JoinTable"]


def _same(tensors, what):
    for each in tensors[1:]:
        tensors[0]._check_same(each, what)
    return [each.features for each in tensors]


class JoinTable(SparseModule):
    """The channels of tensors with the same voxels side by side."""

    def forward(self, input: list[SparseConvTensor]) -> SparseConvTensor:
        """Of a list of tensors."""
        return input[0].replace_feature(torch.cat(_same(input, "roost.spconv.JoinTable"), 1))


class AddTable(SparseModule):
    """The sum of tensors with the same voxels."""

    def forward(self, input: list[SparseConvTensor]) -> SparseConvTensor:
        """Of a list of tensors."""
        return input[0].replace_feature(sum(_same(input, "roost.spconv.AddTable")))


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
