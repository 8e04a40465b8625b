"""Every step asks with the prompts of the configuration."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from qgrag.corpus.records import Chunk, Document
from qgrag.evaluation.answers.broad_questions import LLMQuestionMaker
from qgrag.extraction.facts.llm_entities import LLMEntityExtractor
from qgrag.extraction.facts.llm_triples import LLMTripleExtractor
from qgrag.extraction.questions.llm_questions import LLMQuestionGenerator
from qgrag.extraction.records import Triple
from qgrag.generation.answers import AnswerConfig, AnswerWriter
from qgrag.generation.correctness import CorrectnessJudge
from qgrag.generation.pairwise import PairwiseJudge
from qgrag.generation.subgraph_scores import SubgraphJudge
from qgrag.llm.config import Sampling
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import PLACEHOLDERS, REPLACEABLE, PromptConfig, Prompts
from qgrag.retrieval.results import Hit, RetrievalResult
from qgrag.retrieval.steps.llm_entity_questions import LLMEntityQuestions
from qgrag.retrieval.steps.llm_entity_summaries import LLMEntitySummaries
from qgrag.retrieval.steps.llm_implicit_nodes import LLMImplicitNodes
from qgrag.retrieval.steps.llm_query_entities import LLMQueryEntities
from tests.llm.server import Answer, Call, connected, say, serving

CHUNKS = [Chunk("a", 0, 0, 29, "Mira Tolland lives in Port Esk.", "Port Esk")]
DOCUMENTS = [Document("a", CHUNKS[0].text)]
RESULTS = [RetrievalResult("Where?", "naive", (Hit("a-0", "a", ("a",), 0, 29, 1.0, CHUNKS[0].text),))]
TRIPLES = [[Triple("Mira Tolland", "lives in", "Port Esk")]]

STEPS: dict[str, Callable[[LanguageModel, Prompts], object]] = {
    "pairs": lambda m, p: LLMQuestionGenerator(m, p, count=1)(CHUNKS),
    "pairs_more": lambda m, p: LLMQuestionGenerator(m, p, count=4)(CHUNKS),
    "triples": lambda m, p: LLMTripleExtractor(m, p)(CHUNKS),
    "entities": lambda m, p: LLMEntityExtractor(m, p, gleaning=0)(CHUNKS),
    "entities_more": lambda m, p: LLMEntityExtractor(m, p, gleaning=1)(CHUNKS),
    "query_entities": lambda m, p: LLMQueryEntities(m, p)(["Where?"]),
    "implicit_nodes": lambda m, p: LLMImplicitNodes(m, p)(["Where?"], [[]], TRIPLES),
    "entity_questions": lambda m, p: LLMEntityQuestions(m, p)(["Where?"], ["Mira"]),
    "entity_summary": lambda m, p: LLMEntitySummaries(m, p)(["Where?"], ["Mira"], [["a note"]], [[]]),
    "answer_short": lambda m, p: AnswerWriter(m, None, p)(RESULTS),
    "answer_long": lambda m, p: AnswerWriter(m, AnswerConfig("long"), p)(RESULTS),
    "answer_without_evidence_short": lambda m, p: AnswerWriter(m, None, p).without_evidence(["Where?"]),
    "answer_without_evidence_long": lambda m, p: AnswerWriter(m, AnswerConfig("long"), p).without_evidence(["Where?"]),
    "judge_correct": lambda m, p: CorrectnessJudge(m, p)(["Where?"], [["here"]], ["there"]),
    "judge_pair": lambda m, p: PairwiseJudge(m, p)(["Where?"], ["here"], ["there"]),
    "judge_subgraph": lambda m, p: SubgraphJudge(m, p)(["Where?"], TRIPLES),
    "qfs_users": lambda m, p: LLMQuestionMaker(m, prompts=p)(DOCUMENTS),
    "qfs_questions": lambda m, p: LLMQuestionMaker(m, prompts=p)(DOCUMENTS),
}


def behave(call: Call) -> Answer:
    """Something of everything, so that steps which ask on have a reason to."""
    pair = {"question": f"Who lives in Port Esk, number {call.number}?", "answer": "Mira Tolland"}
    entity = {"name": "Mira Tolland", "type": "PERSON", "description": "Lives in Port Esk."}
    user = {"user": "a newcomer", "tasks": ["find a house"]}
    return say(json.dumps({"pairs": [pair], "entities": [entity], "relations": [], "users": [user], "questions": []}))


@pytest.mark.parametrize("name", REPLACEABLE)
def test_a_replaced_prompt_is_what_is_sent(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("=== user ===\nMy own words: " + " ".join(f"${{{p}}}" for p in sorted(PLACEHOLDERS[name])), "utf-8")
    prompts = Prompts(PromptConfig(files={name: str(path)}))
    with serving(behave) as server, connected(server, sampling=Sampling(max_tokens=120), asks_again=0) as model:
        STEPS[name](model, prompts)
    assert any(prompt.startswith("My own words:") for prompt in server.prompts)
