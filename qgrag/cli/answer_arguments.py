"""Flags of `qgrag eval` that are about answers, and the plan and models that they name."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from qgrag.cli.llm_arguments import HOW_TO_NAME, answer_cache, open_language_model
from qgrag.config import from_plain, load_yaml
from qgrag.errors import ConfigError
from qgrag.evaluation.answers.metrics import Language
from qgrag.evaluation.runs.experiment import AnswerPlan, Models
from qgrag.generation.answers import AnswerConfig
from qgrag.llm.cached_model import CachedLanguageModel, load_language_model
from qgrag.llm.config import LLMConfig
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.llm.wrappers import StopAtBudget


def add_answer_arguments(parser: ArgumentParser) -> None:
    """Who answers, from what, and how answers are measured."""
    parser.add_argument("--answer", action="store_true", help="answer the questions too, and measure the answers")
    parser.add_argument(
        "--reader", choices=["llm", "local"], default="llm", help="who answers: a language model, or rules"
    )
    parser.add_argument("--style", choices=["short", "long"], default="short", help="a phrase, or a full text")
    parser.add_argument("--passages", type=int, default=5, help="number of passages that the reader gets")
    parser.add_argument("--evidence-tokens", type=int, default=6000, help="most tokens of evidence that it gets")
    parser.add_argument("--language", type=Language, default="en", help="language of questions and answers: en or zh")
    parser.add_argument("--meteor", action="store_true", help="measure METEOR too, which needs NLTK and its WordNet")
    parser.add_argument(
        "--judge", type=str | None, default=None, help="who judges: 'same' for the reader's model, or a YAML file"
    )
    parser.add_argument(
        "--compare",
        type=str | None,
        default=None,
        help="a retriever whose answers are compared with those of each other one: win rates",
    )
    parser.add_argument(
        "--answer-batch-size", type=int, default=16, help="number of questions that are answered together"
    )


def answer_plan(args: Namespace) -> AnswerPlan | None:
    """What `add_answer_arguments` names; None without `--answer`.

    Raises:
        ConfigError: flags that do not go together, or a value out of range.
    """
    for flag, given in (("--judge", args.judge), ("--compare", args.compare), ("--meteor", args.meteor)):
        if given and not args.answer:
            raise ConfigError(f"{flag} is about answers: add --answer, or leave it out")
    if args.compare and not args.judge:
        raise ConfigError("--compare needs a judge: --judge same, or --judge FILE.yaml")
    if not args.answer:
        return None
    return AnswerPlan(
        args.reader,
        AnswerConfig(args.style, args.passages, args.evidence_tokens),
        args.language,
        args.compare or "",
        args.meteor,
        args.answer_batch_size,
    )


@contextmanager
def open_models(args: Namespace, cache: Path) -> Iterator[Models]:
    """Reader and judge, which stop the run where their budgets are spent; closed at the end.

    Args:
        args: as parsed.
        cache: file for their answers where `--llm-cache` names none.

    Raises:
        ConfigError: a configuration is wrong, or `--judge same` is asked for and no language model is named.
    """
    with open_language_model(args, cache) as reader, _open_judge(args, cache, reader) as judge:
        yield Models(StopAtBudget(reader) if reader else None, judge, Prompts(args.prompts))


@contextmanager
def _open_judge(args: Namespace, cache: Path, same: CachedLanguageModel | None) -> Iterator[LanguageModel | None]:
    if args.judge is None:
        yield None
        return
    if args.judge == "same":
        if same is None:
            raise ConfigError(f"--judge same needs a language model: {HOW_TO_NAME}")
        yield StopAtBudget(same)
        return
    config = from_plain(LLMConfig, load_yaml(Path(args.judge)), where=args.judge)
    with closing(load_language_model(config, answer_cache(args, cache))) as model:
        yield StopAtBudget(model)
