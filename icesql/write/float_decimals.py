"""Convert floats to decimals: a float counts as the shortest decimal that reads as it.

0.7 fits decimal(10, 2) though no float is exactly 0.7; 0.123 does not.
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icesql.errors import DataError

# No two decimals with at most so many digits read as the same float.
_SURE_DIGITS: Final = {8: 15, 4: 6}
# More digits than a float has before and behind the point of a decimal.
_EXACT: Final = Context(prec=800, traps=[Inexact])


def float_decimals(target: pa.DataType, values: pa.Array) -> pa.Array:
    """``values``, floats or doubles, as the decimal type ``target``.

    Raises DataError or pyarrow's errors for a value with more digits than the type has.
    """
    made = values.cast(target)
    numbers = np.asarray(values.to_numpy(zero_copy_only=False))
    missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    unscaled, short = _unscaled(made)
    short &= np.abs(unscaled) < 10 ** _SURE_DIGITS.get(numbers.dtype.itemsize, 0)
    # Divided as doubles: both operands are exact, so the quotient is the nearest double.
    back = (unscaled / np.float64(10) ** target.scale).astype(numbers.dtype)
    sure = missing | (short & (back == numbers) & (target.scale <= 22))
    if sure.all():
        return made
    found = made.to_pylist()
    for row in np.flatnonzero(~sure).tolist():
        found[row] = _by_text(numbers[row], target.scale)
    return pa.array(found, target)


def _unscaled(made: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The unscaled integers of decimals, and a mask of those that fit 64 bits."""
    buffer = made.buffers()[1]
    words = np.frombuffer(buffer, np.int64)[: 2 * (made.offset + len(made))].reshape(-1, 2)
    words = words[made.offset :]
    low, high = words[:, 0], words[:, 1]
    return low, high == (low >> 63)


def _by_text(number: Any, scale: int) -> Decimal:
    text = np.format_float_positional(number, unique=True, trim="0")
    try:
        return _EXACT.quantize(Decimal(text), Decimal(1).scaleb(-scale))
    except Inexact as error:
        raise DataError("a number has more digits than the column") from error
