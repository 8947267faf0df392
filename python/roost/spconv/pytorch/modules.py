"""Modules that take a `SparseConvTensor`."""

from collections import OrderedDict

import torch

from .core import SparseConvTensor, _sparse

__all__ = [
    "Identity",
    "RemoveGrid",
    "SparseBatchNorm",
    "SparseIdentity",
    "SparseModule",
    "SparseReLU",
    "SparseSequential",
    "SparseSyncBatchNorm",
    "ToDense",
    "assign_name_for_sparse_modules",
    "is_sparse_conv",
    "is_spconv_module",
]


class SparseModule(torch.nn.Module):
    """A module to which `SparseSequential` passes the SparseConvTensor, rather than its features."""

    _convolves = False

    def __init__(self, name: str | None = None):
        super().__init__()
        self.name = name
        self._sparse_unique_name = ""


class SparseSequential(SparseModule):
    """Modules in turn: SparseModules take the SparseConvTensor, others its features (if there are voxels).

    Parameters
    ----------
    args : modules, or one OrderedDict of modules by name
    kwargs : modules by name
    """

    def __init__(self, *args: torch.nn.Module | OrderedDict, **kwargs: torch.nn.Module):
        super().__init__()
        one = len(args) == 1 and isinstance(args[0], OrderedDict)
        for name, module in args[0].items() if one else enumerate(args):
            self.add_module(str(name), module)
        for name, module in kwargs.items():
            self.add(module, name)

    def __getitem__(self, idx: int) -> torch.nn.Module:
        """The module at a position."""
        return list(self._modules.values())[idx]

    def __len__(self) -> int:
        """The number of modules."""
        return len(self._modules)

    def add(self, module: torch.nn.Module, name: str | None = None) -> None:
        """Appends a module; its name is its position if None."""
        name = str(len(self)) if name is None else name
        if name in self._modules:
            raise ValueError(f"roost.spconv.SparseSequential: there is a module {name!r}; give another name")
        self.add_module(name, module)

    def forward(self, input):
        """The result of the last module."""
        for module in self._modules.values():
            if isinstance(input, SparseConvTensor) and not is_spconv_module(module):
                input = input.replace_feature(module(input.features)) if len(input.indices) else input
            else:
                input = module(input)
        return input


class _OfFeatures:
    """Before a module of torch: it takes a SparseConvTensor, too."""

    def forward(self, input):
        """Of a tensor, or of the features of a SparseConvTensor."""
        if isinstance(input, SparseConvTensor):
            return input.replace_feature(super().forward(input.features))
        return super().forward(input)


class SparseBatchNorm(_OfFeatures, torch.nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` that takes a SparseConvTensor, too."""


class SparseSyncBatchNorm(_OfFeatures, torch.nn.SyncBatchNorm):
    """`torch.nn.SyncBatchNorm` that takes a SparseConvTensor, too."""


class SparseReLU(_OfFeatures, torch.nn.ReLU):
    """`torch.nn.ReLU` that takes a SparseConvTensor, too."""


class SparseIdentity(_OfFeatures, torch.nn.Identity):
    """`torch.nn.Identity` that takes a SparseConvTensor, too."""


class Identity(torch.nn.Module):
    """Returns what it is given."""

    def forward(self, input):
        """`input`."""
        return input


class ToDense(SparseModule):
    """`SparseConvTensor.dense` as a module."""

    def forward(self, x: SparseConvTensor) -> torch.Tensor:
        """A tensor of (batch, channel, position on each axis)."""
        return _sparse(x, "roost.spconv.ToDense").dense()


class RemoveGrid(SparseModule):
    """Sets the attribute `grid` to None."""

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        """`x`."""
        x.grid = None
        return x


def is_spconv_module(module: torch.nn.Module) -> bool:
    """Whether `SparseSequential` gives a module the SparseConvTensor."""
    return isinstance(module, (SparseModule, _OfFeatures))


def is_sparse_conv(module: torch.nn.Module) -> bool:
    """Whether a module is a `SparseConvolution`."""
    return isinstance(module, SparseModule) and module._convolves


def assign_name_for_sparse_modules(module: torch.nn.Module) -> None:
    """Tells each SparseModule in a module its name there."""
    for name, each in module.named_modules():
        if isinstance(each, SparseModule):
            each._sparse_unique_name = name
