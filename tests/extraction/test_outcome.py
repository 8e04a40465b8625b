from collections import Counter

from qgrag.extraction.outcome import outcome
from qgrag.llm.records import CompletionError


def test_outcomes() -> None:
    error = CompletionError("timeout", "no answer")
    assert outcome((1,), True, [error], Counter(x=1, y=0), "-").status == "ok"
    assert outcome((1,), True, [], Counter(x=1, y=0), "-").counts == {"x": 1}
    assert outcome((), False, [error], Counter(), "-").reason == "timeout: no answer"
    assert outcome((), False, [], Counter(repeats=2), "-").status == "failed"
    empty = outcome((), False, [], Counter(), "nothing there")
    assert (empty.status, empty.reason) == ("empty", "nothing there")
