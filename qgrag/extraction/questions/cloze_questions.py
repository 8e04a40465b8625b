"""Questions on sentences in Chinese, Japanese or Korean script: one blank each, by script alone, with no parser."""

import re
from collections.abc import Iterator

from qgrag.corpus.scripts import HANGUL, KANA
from qgrag.extraction.questions.question_forms import Asked

BLANKS = (
    (re.compile(r"(?<!\d)\d{3,4}年(?:\d{1,2}月(?:\d{1,2}日)?)?"), "什么时候"),
    (re.compile(r"《[^《》]{1,40}》|“[^“”]{1,40}”|「[^「」]{1,40}」"), "什么"),
    (re.compile(r"(?<![\d.])\d[\d,.]*(?:%|万|亿)?(?![\d,.%万亿年月日])"), "多少"),
    (re.compile(r"[A-Z][A-Za-z.'’-]+(?:[ ·][A-Z][A-Za-z.'’-]+)*"), "什么"),
)
KANA_OR_HANGUL = re.compile(f"[{KANA}{HANGUL}]")
ENDS = re.compile(r"[。．.!！?？;；\s]+$")
MIN_CHARS = 6


def cloze_questions(sentence: str) -> Iterator[Asked]:
    """'他于1995年出生。' answers '他于什么时候出生？'; none for Japanese and Korean, whose question words inflect."""
    body = ENDS.sub("", sentence.strip())
    if len(body) < MIN_CHARS or sentence.rstrip().endswith(("?", "？")) or KANA_OR_HANGUL.search(body):
        return
    for blank, asked in BLANKS:
        for found in blank.finditer(body):
            if found[0] != body:
                yield Asked(f"{body[: found.start()]}{asked}{body[found.end() :]}？", found[0])
