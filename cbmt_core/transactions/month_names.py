"""Names of months in dates: English, German, French, Spanish, Italian, Portuguese and Dutch."""

from __future__ import annotations

import re
import unicodedata

from cbmt_core.duck import literal

__all__ = ["english_month", "english_sql"]

_MONTHS = {
    "Jan": "jan(v|vier|uary?|uari|eiro|ner)?|ene(ro)?|gen(naio)?",
    "Feb": "feb(r|ruary?|ruari|rero|braio)?|fev(r|rier|ereiro)?",
    "Mar": "mar(s|z|ch|zo|co)?|maart|maerz|mrz|mrt",
    "Apr": "apr(il|ile)?|avr(il)?|abr(il)?",
    "May": "may|mai|mayo|maio|mag(gio)?|mei",
    "Jun": "june?|juin|juni|junio|junho|giu(gno)?",
    "Jul": "july?|juil(let)?|juli|julio|julho|lug(lio)?",
    "Aug": "aug(ust|ustus)?|aout|ago(sto)?",
    "Sep": "sept?(ember|embre|tiembre|iembre)?|set(tembre|embro|iembre)?",
    "Oct": "oct(ober|obre|ubre)?|okt(ober)?|ott(obre)?|out(ubro)?",
    "Nov": "nov(ember|embre|iembre|embro)?",
    "Dec": "dec(ember|embre)?|dez(ember|embro)?|dic(embre|iembre)?",
}
"""The English name -> what it is called, without accents and case."""


def english_month(word: str) -> str | None:
    """The English name, of three letters, of a month; None for other words."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))
    return next((month for month, names in _MONTHS.items() if re.fullmatch(names, bare)), None)


def english_sql(text: str) -> str:
    """SQL for a date with its month in English and without "de" or points around it: "4. März 2021" as "4 Mar 2021"."""
    text = f"strip_accents(lower({text}))"
    for month, names in _MONTHS.items():
        pattern = rf"(^|[^a-z])({names})\.?([^a-z]|$)"
        put = rf"\1{month}\{names.count('(') + 3}"
        text = f"regexp_replace({text}, {literal(pattern)}, {literal(put)})"
    return f"regexp_replace(regexp_replace({text}, '\\b(de|del|di) ', '', 'g'), '^(\\d+)\\. ', '\\1 ')"
