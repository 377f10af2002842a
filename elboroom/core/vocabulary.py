"""The ids of the four marks that every vocabulary begins with. A sentence is the row <s> w_1 .. w_T </s> <pad> .. <pad>."""

from __future__ import annotations

PAD, START, END, UNK = 0, 1, 2, 3
