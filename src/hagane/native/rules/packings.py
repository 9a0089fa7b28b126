"""All recipes of packed weights by name, as files of compiled parts have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hagane.native.kernels.packing import as_is, padded_rows, zeros
from hagane.native.rules.bytes.depthwise import pack_bytes
from hagane.native.rules.bytes.products import pack_quads
from hagane.native.rules.bytes.recurrent import pack_byte_columns, sum_byte_columns
from hagane.native.rules.bytes.short_depthwise import pack_short_taps
from hagane.native.rules.bytes.shorts import pack_shorts
from hagane.native.rules.convolution.depthwise import pack_depthwise
from hagane.native.rules.convolution.direct import pack_groups
from hagane.native.rules.convolution.few_outputs import outputs_last
from hagane.native.rules.convolution.filtered import pack_filtered
from hagane.native.rules.convolution.volume import pack_volume, pack_volume_bias
from hagane.native.rules.convolution.winograd import pack_points
from hagane.native.rules.looped.few_bits import pack_block_numbers, pack_few_bits
from hagane.native.rules.onednn.calls import addresses_of, pack_pieces
from hagane.native.rules.products.matrix import pack_matrix
from hagane.native.rules.recurrent import pack_gates

PACKINGS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        as_is,
        outputs_last,
        pack_byte_columns,
        pack_block_numbers,
        pack_bytes,
        pack_depthwise,
        pack_few_bits,
        pack_filtered,
        pack_gates,
        pack_groups,
        pack_matrix,
        pack_points,
        pack_quads,
        pack_short_taps,
        pack_shorts,
        pack_volume,
        pack_volume_bias,
        padded_rows,
        sum_byte_columns,
        zeros,
    )
}
# These speak of oneDNN in one process: their results cannot be kept.
OF_ONE_PROCESS = frozenset({addresses_of, pack_pieces})
