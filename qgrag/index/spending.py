"""What a build asks of language models, counted over all its runs, stopped and killed ones included."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from qgrag.errors import BuildStoppedError
from qgrag.index.journal import Journal
from qgrag.llm.cache import ResponseCache
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.usage import Usages, measure, sum_usages


@dataclass
class Spending:
    """LLM calls, tokens and seconds, by step.

    Args:
        stopped: of the runs of this build that ended early.
        run: of this one.
    """

    stopped: Usages
    run: dict[str, dict[str, float]]


@contextmanager
def counted(journal: Journal, answers: ResponseCache | None) -> Iterator[Spending]:
    """Measure what the block asks; what a run spends that ends early is kept with its work.

    Args:
        journal: of the build.
        answers: what keeps the language model's answers, if anything does.

    Raises:
        BuildStoppedError: the block's model is not available.
    """
    spending = Spending(_stopped(journal, answers), {})
    finished = False
    with measure() as meter:
        try:
            yield spending
            finished = True
        except LLMUnavailableError as error:
            raise BuildStoppedError(f"{error}. Finished work is kept; the same command goes on from there") from error
        finally:
            spending.run = meter.to_dict()
            if spending.run and not finished:
                journal.write_usage(sum_usages(spending.stopped, spending.run))
            if answers is not None:
                answers.book()


def _stopped(journal: Journal, answers: ResponseCache | None) -> Usages:
    """What earlier runs spent; a run that ended without warning left it only in the answers, and it is booked here."""
    if answers is not None and (left := answers.unbooked()):
        spent = {step: usage.to_dict() for step, usage in left.items()}
        journal.write_usage(sum_usages(journal.read_usage(), spent))
        answers.book()
    return journal.read_usage()
