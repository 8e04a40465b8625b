"""Questions for query-focused summaries: users of a corpus, their tasks, and broad questions (FG-RAG, section 4.1)."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from pydantic import BaseModel

from qgrag.corpus.records import Document
from qgrag.corpus.sentences import split_sentences
from qgrag.errors import InputError
from qgrag.extraction.name_spans import name_spans
from qgrag.extraction.spacy_pipeline import DEFAULT_PIPELINE, parse
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.llm.tokens import within_tokens
from qgrag.names.cleaning import clean_name
from qgrag.names.forms import without_punctuation
from qgrag.names.vocabulary import VALUE_TYPES

logger = logging.getLogger(__name__)
SENTENCES_READ = 20


@dataclass(frozen=True)
class QFSConfig:
    """Args:
    users: of the corpus.
    tasks: of each user.
    questions: for each task.
    overview_tokens: of what a language model gets to see of the corpus.
    """

    users: int = 5
    tasks: int = 5
    questions: int = 5
    overview_tokens: int = 6000

    def __post_init__(self) -> None:
        for name in ("users", "tasks", "questions", "overview_tokens"):
            if getattr(self, name) < 1:
                raise InputError(f"qfs.{name} must be at least 1, not {getattr(self, name)}")

    @property
    def total(self) -> int:
        """Questions asked for."""
        return self.users * self.tasks * self.questions


@dataclass(frozen=True, slots=True)
class BroadQuestion:
    """A question that asks for an understanding of the whole corpus, with whom it is for.

    Its id is `qfs-{user}-{task}-{question}`: the place of its user, of the task among that user's and of the question
    among the task's, each from 0.
    """

    id: str
    user: str
    task: str
    text: str

    def to_dict(self) -> dict[str, object]:
        """A line that data set `jsonl` reads; no document is gold."""
        return {
            "id": self.id,
            "question": self.text,
            "documents": [],
            "type": "qfs",
            "user": self.user,
            "task": self.task,
        }


class QuestionMaker(Protocol):
    """A corpus to broad questions; `failed` names what no questions could be made for."""

    failed: list[str]

    def __call__(self, documents: Sequence[Document]) -> list[BroadQuestion]: ...


class GeneratedUser(BaseModel):
    user: str
    tasks: list[str]


class GeneratedUsers(BaseModel):
    users: list[GeneratedUser]


class GeneratedQuestions(BaseModel):
    questions: list[str]


class LLMQuestionMaker:
    """Asks a language model for users and tasks once, and for the questions of each task.

    Args:
        model: who is asked.
        config: how many of each.
        prompts: `qfs_users` and `qfs_questions` are used.
    """

    step = "qfs_questions"

    def __init__(self, model: LanguageModel, config: QFSConfig | None = None, prompts: Prompts | None = None) -> None:
        self.failed: list[str] = []
        self.model = model
        self.config = config or QFSConfig()
        self.prompts = prompts or Prompts()

    def __call__(self, documents: Sequence[Document]) -> list[BroadQuestion]:
        """Fewer than `config.total` where the model gives fewer; a question given twice is kept once.

        Raises:
            LLMUnavailableError: the model named no users.
        """
        c, language = self.config, self.prompts.language
        seen = overview(documents, c.overview_tokens)
        fill = self.prompts["qfs_users"].fill(language=language, users=c.users, tasks=c.tasks, overview=seen)
        (completion,) = self.model.complete([fill], GeneratedUsers, step="qfs_users")
        generated = completion.parsed(GeneratedUsers)
        if generated is None or not generated.users:
            raise LLMUnavailableError(f"the language model named no users of the corpus: {completion.error}")
        asked = [
            (u, t, user.user, task)
            for u, user in enumerate(generated.users[: c.users])
            for t, task in enumerate(user.tasks[: c.tasks])
        ]
        prompt = self.prompts["qfs_questions"]
        completions = self.model.complete(
            [
                prompt.fill(language=language, count=c.questions, user=user, task=task, overview=seen)
                for _, _, user, task in asked
            ],
            GeneratedQuestions,
            step=self.step,
        )
        made: dict[str, BroadQuestion] = {}
        for (u, t, user, task), answer in zip(asked, completions, strict=True):
            given = answer.parsed(GeneratedQuestions)
            if given is None:
                self.failed.append(f"no questions for user {user!r}, task {task!r}: {answer.error}")
                logger.warning(self.failed[-1])
                continue
            for q, text in enumerate(given.questions[: c.questions]):
                if key := " ".join(text.casefold().split()):
                    made.setdefault(key, BroadQuestion(f"qfs-{u}-{t}-{q}", user, task, text))
        return list(made.values())


USERS = (
    "a student who prepares a talk",
    "a journalist who looks for a story",
    "an adviser who has to recommend what to do",
    "a teacher who plans a course",
    "a newcomer to the field",
)
FORMS = (
    "What are the main themes around {topic}, and how do they hang together?",
    "How has {topic} changed over time, and what brought the changes about?",
    "Which people, places and events matter most for {topic}, and why?",
    "What different views of {topic} are there, and where do they disagree?",
    "What follows from what is told of {topic}, and what examples show it?",
)


class LocalQuestionMaker:
    """Names the topics that most documents speak of, by spaCy, and puts broad questions about each.

    Users and forms of question are fixed, five of each; only topics depend on the corpus. They stand in where no
    language model is at hand.

    Args:
        config: how many of each, at most five users and five questions.
        pipeline: spaCy pipeline.
    """

    def __init__(self, config: QFSConfig | None = None, pipeline: str = DEFAULT_PIPELINE) -> None:
        self.failed: list[str] = []
        self.config = config or QFSConfig()
        self._pipeline = pipeline
        if self.config.users > len(USERS) or self.config.questions > len(FORMS):
            raise InputError(
                f"rules know {len(USERS)} users and {len(FORMS)} forms of question; "
                "ask a language model for more, or lower qfs.users and qfs.questions"
            )

    def __call__(self, documents: Sequence[Document]) -> list[BroadQuestion]:
        c = self.config
        topics = iter(self.topics(documents, c.users * c.tasks))
        made = []
        for u, user in enumerate(USERS[: c.users]):
            for t, topic in enumerate(islice(topics, c.tasks)):
                task = f"understand {topic}"
                for q, form in enumerate(FORMS[: c.questions]):
                    made.append(BroadQuestion(f"qfs-{u}-{t}-{q}", user, task, form.format(topic=topic)))
        return made

    def topics(self, documents: Sequence[Document], count: int) -> list[str]:
        """Names in the beginnings of most documents; of equal counts the one met first. O(text read)."""
        texts = []
        for document in documents:
            spans = split_sentences(document.text)[:SENTENCES_READ]
            texts.append("\n".join([document.title, *(document.text[a:b] for a, b in spans)]))
        found: Counter[str] = Counter()
        shown: dict[str, str] = {}
        for doc in parse(texts, self._pipeline, description="Finding topics"):
            names = {
                without_punctuation(n): n
                for s in name_spans(doc)
                if s.type not in VALUE_TYPES and (n := clean_name(s.text(doc)))
            }
            found.update(names.keys())
            for key, name in names.items():
                shown.setdefault(key, name)
        return [shown[key] for key, _ in found.most_common(count)]


def overview(documents: Sequence[Document], max_tokens: int) -> str:
    """Title and first sentence of documents spread over the corpus, as many as fit."""
    lines = []
    for document in documents:
        spans = split_sentences(document.text)
        first = document.text[spans[0][0] : spans[0][1]] if spans else ""
        lines.append(": ".join(part for part in (document.title, first) if part))
    fits = max(1, len(within_tokens(lines, max_tokens).splitlines()))
    step = max(1, -(-len(lines) // fits))
    return within_tokens(lines[::step], max_tokens)
