"""What a query is about, by a language model (DualGraphRAG, section 3.3.1; FG-RAG, equation 8)."""

from collections.abc import Sequence

from pydantic import BaseModel

from qgrag.llm.model import LanguageModel
from qgrag.llm.parsing import parse_answer
from qgrag.llm.prompts import Prompts
from qgrag.names.cleaning import clean_model_name, find_name
from qgrag.names.forms import without_punctuation
from qgrag.retrieval.steps.ask import ask
from qgrag.retrieval.steps.protocols import QueryEntitySet


class GeneratedQueryEntities(BaseModel):
    explicit: list[str] = []
    enhanced: list[str] = []


class LLMQueryEntities:
    """A `QueryEntities`. What the model calls explicit but the query does not name counts as enhanced;
    names of the prompt's examples that the query does not have are dropped. A failed request gives None."""

    step = "query_entities"

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None) -> None:
        self.model = model
        self._prompt = (prompts or Prompts())["query_entities"]
        answers = [parse_answer(text, GeneratedQueryEntities).value for text in self._prompt.example_answers]
        self._example_keys = {
            without_punctuation(name) for a in answers if isinstance(a, GeneratedQueryEntities) for name in a.explicit
        }

    def __call__(self, queries: Sequence[str]) -> list[QueryEntitySet | None]:
        rows = [{"query": query} for query in queries]
        answers = ask(self.model, self._prompt, rows, step=self.step, schema=GeneratedQueryEntities)
        return [self._checked(*pair) for pair in zip(queries, answers, strict=True)]

    def _checked(self, query: str, generated: GeneratedQueryEntities | None) -> QueryEntitySet | None:
        if generated is None:
            return None
        explicit: dict[str, str] = {}
        enhanced: dict[str, str] = {}
        for raw, says_explicit in [(r, True) for r in generated.explicit] + [(r, False) for r in generated.enhanced]:
            name = clean_model_name(raw, query)
            key = without_punctuation(name)
            named = find_name(name, query) is not None
            if not key or key in explicit or (key in self._example_keys and not named):
                continue
            (explicit if named and says_explicit else enhanced).setdefault(key, name)
        return QueryEntitySet(tuple(explicit.values()), tuple(enhanced.values()))
