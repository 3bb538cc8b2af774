"""Types of numeric arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Floats", "Floats32", "Ints"]

Floats = npt.NDArray[np.float64]
"""An array of double-precision numbers of any shape."""
Floats32 = npt.NDArray[np.float32]
"""An array of single-precision numbers of any shape."""
Ints = npt.NDArray[np.int64]
"""An array of integers of any shape."""
Bools = npt.NDArray[np.bool_]
"""An array of booleans of any shape."""
