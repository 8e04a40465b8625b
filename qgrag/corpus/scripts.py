"""Scripts without spaces between words, as ranges for the inside of a regular expression's `[...]`."""

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
KANA = "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
HANGUL = "\uac00-\ud7af"
"""Hangul syllables: Korean has spaces, but its particles are joined to the words before them."""

_THAI_LAO = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e80-\u0eff"
_BURMESE_KHMER = "\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7\u17dc-\u17e9"
SOUTHEAST_ASIAN = _THAI_LAO + _BURMESE_KHMER
"""Thai, Lao, Burmese and Khmer, without their punctuation."""

UNSPACED = HAN + KANA + HANGUL + SOUTHEAST_ASIAN
