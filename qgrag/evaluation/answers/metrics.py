"""Metrics of one answer against the accepted ones, in English or Chinese.

METEOR comes from NLTK, all else from torchmetrics. torchmetrics splits text at spaces for exact match, F1 and ROUGE,
and its ROUGE keeps Latin letters only. So Chinese is split into characters here first and loses its punctuation, as in
CMRC 2018's evaluation.
"""

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from qgrag.errors import InputError, MissingComponentError, MissingExtraError
from qgrag.evaluation.datasets.records import Question

Language = Literal["en", "zh"]
Meteor = Callable[[str, Sequence[str]], float]
ENGLISH_ARTICLES = frozenset(("a", "an", "the"))
ROUGE_KEYS = ("rouge1", "rougeL")
WORD = re.compile(r"\w+")
BLEU_TOKENIZERS: dict[str, Literal["13a", "zh"]] = {"en": "13a", "zh": "zh"}
ANSWER_METRICS = ("exact_match", "f1", "contains", "rouge1", "rougeL", "rouge1_precision", "rouge1_recall", "bleu1")


def check_language(questions: Iterable[Question], language: Language) -> None:
    """Refuse to score Chinese as English, which would give zeros; to be called before anything is asked.

    Raises:
        InputError: the language is `en`, and of the reference answers with letters more than half are mostly Chinese.
    """
    if language != "en":
        return
    letters = ([c for c in text if c.isalpha()] for question in questions for text in question.answers)
    chinese = [2 * sum(map(_is_chinese, found)) > len(found) for found in letters if found]
    if 2 * sum(chinese) > len(chinese):
        raise InputError(
            f"{sum(chinese)} of {len(chinese)} reference answers are Chinese, and English metrics give those zeros; "
            "set the language to zh (--language zh)"
        )


def answer_metrics(prediction: str, references: Sequence[str], language: Language = "en") -> dict[str, float]:
    """Every metric of one answer, from 0 to 1; with several references the best counts, save for BLEU.

    - `exact_match`, `f1`: SQuAD 1.1's, after lower case and without punctuation and English articles. Text that this
      leaves nothing of, as option `A`, is compared with its articles.
    - `contains`: whether the words of a reference, normalised likewise, stand in the answer one after the other; the
      exact match where the reference is articles alone, since any sentence may have those.
    - `rouge1`, `rougeL`: F-measure over words, without stemming (Lin 2004); `rouge1_precision`, `rouge1_recall` belong
      to the reference with the best F-measure.
    - `bleu1`: sentence BLEU with unigrams only and brevity penalty, on sacreBLEU's tokens `13a` (`zh` for Chinese),
      case kept, punctuation counted (Papineni et al. 2002). All references count at once: a token is right if one of
      them has it, and the one of nearest length sets the penalty.

    In Chinese a word is one character of it, or a run of other letters and digits; full-width forms count as the plain
    ones (Unicode NFKC).

    Args:
        prediction: the answer given, possibly empty.
        references: accepted answers, at least one.
        language: of the answers.

    Raises:
        InputError: there is no reference, or the language is unknown.
    """
    from torchmetrics.functional.text import sacre_bleu_score

    if not references:
        raise InputError("an answer needs at least one reference to be compared with")
    if language not in BLEU_TOKENIZERS:
        raise InputError(f"language {language!r} has no answer metrics; use one of {', '.join(BLEU_TOKENIZERS)}")
    if language == "zh":
        prediction, *references = (unicodedata.normalize("NFKC", text) for text in (prediction, *references))
    split = split_chinese if language == "zh" else str
    given, accepted = split(prediction), [split(reference) for reference in references]
    exact, f1 = _squad(given, accepted)
    bleu = sacre_bleu_score([prediction], [list(references)], n_gram=1, tokenize=BLEU_TOKENIZERS[language])
    return {
        "exact_match": exact,
        "f1": f1,
        "contains": float(exact or any(_stands_in(words(reference), words(given)) for reference in accepted)),
        **_rouge(given, accepted, language),
        "bleu1": bleu.item(),
    }


def split_chinese(text: str) -> str:
    """Text with spaces around each Chinese character and in place of punctuation, in lower case.

    Example:
        >>> split_chinese("《红楼梦》有120回。")
        '红 楼 梦 有 120 回'
    """
    characters = []
    for character in text.lower():
        if _is_chinese(character):
            characters.append(f" {character} ")
        else:
            characters.append(" " if unicodedata.category(character).startswith("P") else character)
    return " ".join("".join(characters).split())


def _is_chinese(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or "\U00020000" <= character <= "\U0003ffff"


def _squad(given: str, accepted: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1 of the best reference."""
    from torchmetrics.functional.text import squad

    if not words(given):
        bare = _bare_words(given)
        same = float(bool(bare) and bare in map(_bare_words, accepted))
        return same, same
    overlap = squad(
        {"prediction_text": given, "id": "0"}, {"answers": {"text": list(accepted), "answer_start": []}, "id": "0"}
    )
    return overlap["exact_match"].item() / 100, overlap["f1"].item() / 100


def _rouge(given: str, accepted: Sequence[str], language: Language) -> dict[str, float]:
    """Best F-measure over the references for each kind of ROUGE, and precision and recall of that ROUGE-1."""
    from torchmetrics.functional.text import rouge_score

    normalizer, tokenizer = (str, str.split) if language == "zh" else (None, None)
    scores = [
        rouge_score(given, reference, rouge_keys=ROUGE_KEYS, normalizer=normalizer, tokenizer=tokenizer)
        for reference in accepted
    ]
    best = max(scores, key=lambda score: score["rouge1_fmeasure"].item())
    return {
        **{key: max(score[f"{key}_fmeasure"].item() for score in scores) for key in ROUGE_KEYS},
        "rouge1_precision": best["rouge1_precision"].item(),
        "rouge1_recall": best["rouge1_recall"].item(),
    }


def words(text: str) -> list[str]:
    """Words as SQuAD's normalisation leaves them: lower case, no punctuation, no English article."""
    return [word for word in _bare_words(text) if word not in ENGLISH_ARTICLES]


def _bare_words(text: str) -> list[str]:
    return "".join(character for character in text.lower() if character not in string.punctuation).split()


def _stands_in(part: Sequence[str], whole: Sequence[str]) -> bool:
    width = len(part)
    return bool(part) and any(list(whole[i : i + width]) == list(part) for i in range(len(whole) - width + 1))


def load_meteor(wordnet: Any = None) -> Meteor:
    """A function from an English answer and its references to METEOR, the best reference counting.

    Banerjee and Lavie (2005) with NLTK's parameters: words match exactly, by Porter's stem or as WordNet synonyms of
    their stems (so NLTK has it); alpha = 0.9, beta = 3, gamma = 0.5. Words are runs of letters and digits, in lower
    case.

    Args:
        wordnet: NLTK's reader of WordNet; the one of its data folder if not given.

    Raises:
        MissingExtraError: NLTK is not installed.
        MissingComponentError: WordNet is in none of the folders that NLTK searches.
    """
    try:
        from nltk.corpus import wordnet as installed
        from nltk.translate.meteor_score import meteor_score
    except ImportError as error:
        raise MissingExtraError("METEOR needs NLTK; install it with: pip install 'qgrag[answers]'") from error
    if wordnet is None:
        wordnet = installed
        try:
            wordnet.ensure_loaded()
        except LookupError as error:
            raise MissingComponentError(
                "METEOR needs WordNet, which NLTK does not find; get it with: python -m nltk.downloader wordnet "
                "(where there is no network, copy its folder nltk_data here and name it in NLTK_DATA)"
            ) from error

    def meteor(prediction: str, references: Sequence[str]) -> float:
        if not references:
            raise InputError("an answer needs at least one reference to be compared with")
        words = [WORD.findall(reference.lower()) for reference in references]
        return float(meteor_score(words, WORD.findall(prediction.lower()), wordnet=wordnet))

    return meteor
