"""Invented firm names: unique, plausible, and some with characters that are special in paths, CSV and SQL."""

from __future__ import annotations

import re

import numpy as np

from cbmt_core.simulate.industries import Industry

__all__ = ["firm_names"]

_HEADS = tuple(
    re.findall(
        r"\w+",
        """Bral Corv Dunm Elth Fenn Garv Hald Ilv Jorv Kest Larn Mirr Nolv Ostr Perv Quil Rusk Selv Tarn Ulv
        Varn Wend Yarv Zell Brind Cald Dorv Embr Falk Grev Hesk Ivarr Keld Lorv Marv Nesk Orl Pell Rav
        Skel Tolv Umbr Velk Wisk""",
    )
)
_TAILS = tuple(
    re.findall(
        r"\w+",
        """anto awick edale efort egard elo emere enna erby essa evar ibel idor ikka imar inda isto obel
        ogne ondo oria osk ovale uvia ystra""",
    )
)

_PLAIN = ("{a} {n}", "{a}", "{n} by {a}", "{a} {n} Co.", "The {a} {n}", "{a} & {b}")
_AWKWARD = (
    "{a}, {b} & Co.",
    "{a}'s {n}",
    'The "{a}" {n}',
    "{a}/{b}",
    "Maison Bé{a} — {n}",
    "Ølgård {a}",
    "{a} & Söhne, {n}",
    "100% {a}?",
    "O'{a} \\ {b}",
)
EVERY = 6
"""One firm in this many has an awkward name."""


def firm_names(industries: list[Industry], seed: int) -> list[str]:
    """One name for each firm. No two names have the same first stem, so no two are equal."""
    stems = [head + tail for head in _HEADS for tail in _TAILS]
    shuffled = np.random.default_rng([seed, 0xF1A3]).permutation(len(stems))
    names = []
    for index, industry in enumerate(industries):
        lap, place = divmod(index, len(stems))
        stem = stems[shuffled[place]] + (f" {lap + 1}" if lap else "")
        partner = stems[shuffled[place - 1 - len(stems) // 2]]
        noun = industry.nouns[index % len(industry.nouns)]
        if index % EVERY == EVERY // 2:
            pattern = _AWKWARD[index // EVERY % len(_AWKWARD)]
        else:
            pattern = _PLAIN[int(shuffled[place]) % len(_PLAIN)]
        names.append(pattern.format(a=stem, b=partner, n=noun))
    return names
