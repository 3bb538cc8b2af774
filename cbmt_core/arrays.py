"""Types of numeric arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Floats32"]

Floats = npt.NDArray[np.float64]
"""An array of double-precision numbers of any shape."""
Floats32 = npt.NDArray[np.float32]
"""An array of single-precision numbers of any shape."""
