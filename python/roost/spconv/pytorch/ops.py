"""Shapes of outputs, and `ConvAlgo`."""

from collections.abc import Sequence

from .core import ConvAlgo

__all__ = ["ConvAlgo", "get_conv_output_size", "get_deconv_output_size"]


def get_conv_output_size(
    input_size: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    """The box of a convolution's or a pooling's outputs, from a number of each axis."""
    return [
        (extent + 2 * before - apart * (size - 1) - 1) // step + 1
        for extent, size, step, before, apart in zip(input_size, kernel_size, stride, padding, dilation)
    ]


def get_deconv_output_size(
    input_size: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
) -> list[int]:
    """The box of a transposed convolution's outputs. It does not depend on the dilation, as in spconv: what a
    dilated kernel reaches beyond it is left out."""
    return [
        (extent - 1) * step - 2 * before + size + after
        for extent, size, step, before, after in zip(input_size, kernel_size, stride, padding, output_padding)
    ]
