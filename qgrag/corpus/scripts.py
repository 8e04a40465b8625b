"""Scripts that are written without spaces between words, as ranges for the inside of a regular expression's `[...]`."""

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
KANA = "\u3040-\u30ff"
HANGUL = "\uac00-\ud7af"
"""Hangul syllables: Korean has spaces, but its particles are joined to the words before them."""
