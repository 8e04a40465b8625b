"""`qgrag ask`: questions to answers with the chunks that they cite."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console
from rich.markup import escape

from qgrag.cli.exit_codes import DONE, PARTLY
from qgrag.cli.llm_arguments import (
    HOW_TO_NAME,
    add_asking_arguments,
    cache_beside,
    open_language_model,
)
from qgrag.cli.outputs import check_output_file
from qgrag.cli.parsing import command_parser, options_first
from qgrag.cli.retrieve import add_query_arguments, given_queries
from qgrag.cli.show import show_estimates, show_usage
from qgrag.cli.show_results import show_answer
from qgrag.errors import ConfigError
from qgrag.files import write_json_lines
from qgrag.generation.answers import AnswerConfig, AnswerWriter
from qgrag.index.reader import Index
from qgrag.llm.model import LanguageModel, StepEstimate
from qgrag.llm.prompts import Prompts
from qgrag.llm.usage import measure
from qgrag.llm.wrappers import DryRun
from qgrag.retrieval.registry import load_retriever

EXAMPLES = """Ask an index questions and get answers from what it retrieves, with the chunks that they cite. With no
language model named, the evidence alone is shown.

  qgrag ask my-index "Who founded the conservatory?"                          the evidence alone
  qgrag ask my-index --llm-base-url http://localhost:8000/v1 --llm-model NAME "a question" "another"
  qgrag ask my-index --llm configs/llm/smollm2.yaml --top-k 2 --evidence-tokens 600 "a question"
  qgrag ask my-index --llm my.yaml --style long --retriever fg --queries q.jsonl --dry-run     what it would spend
  qgrag ask my-index --llm my.yaml --style long --retriever fg --queries q.jsonl --out answers.jsonl
  qgrag ask my-index --llm my.yaml --prompts.language German --prompts.files.answer_short my-answer.txt "a question"
"""

NO_MODEL = f"No language model is configured, so here is the evidence alone. Name one with {HOW_TO_NAME}."


def make_parser() -> ArgumentParser:
    parser = command_parser("ask", EXAMPLES)
    add_query_arguments(parser)
    add_asking_arguments(parser)
    parser.add_argument("--style", choices=["short", "long"], default="short", help="a phrase, or a full text")
    parser.add_argument("--dry-run", action="store_true", help="say what each step would spend, and ask nothing")
    parser.add_argument("--evidence-tokens", type=int, default=6000, help="most tokens of evidence that it reads")
    return parser


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    args = parser.instantiate_classes(parser.parse_args(options_first(parser, arguments)))
    queries = given_queries(args)
    check_output_file(args.out, "--out")
    config = AnswerConfig(args.style, max(1, args.top_k), args.evidence_tokens)
    index = Index.open(args.index, device=args.device)
    prompts = Prompts(args.prompts)
    with open_language_model(args, None if args.dry_run else cache_beside(args.out)) as model, measure() as meter:
        if args.llm_steps and model is None:
            raise ConfigError(f"--llm-steps needs a language model: {HOW_TO_NAME}")
        if args.dry_run:
            texts = [q.text for q in queries]
            show_estimates(Console(), estimates(args, index, model, config, prompts, texts) if model else [])
            return 0
        retriever = load_retriever(index, args.retriever, model=model if args.llm_steps else None, prompts=prompts)
        results = retriever.retrieve([q.text for q in queries], top_k=args.top_k, batch_size=args.batch_size)
        writer = AnswerWriter(model, config, prompts) if model is not None else None
        answers = writer(results) if writer else [None] * len(results)
    console = Console(stderr=bool(args.out))
    if writer is None:
        console.print(NO_MODEL)
    if args.out:
        rows = zip(queries, answers, results)
        write_json_lines(
            Path(args.out),
            ({"id": q.id, "answer": a and a.to_dict(), "retrieval": r.to_dict()} for q, a, r in rows),
        )
        console.print(f"{len(results)} results written to {escape(args.out)}", highlight=False)
    else:
        for answer, result in zip(answers, results):
            show_answer(console, answer, result, explain=args.explain)
    show_usage(console, meter.to_dict(), "asked of the language model")
    failed = sum(bool(answer and answer.error) for answer in answers)
    if failed:
        console.print(f"{failed} of {len(answers)} answers failed; the same command tries them again")
    return PARTLY if failed else DONE


def estimates(
    args: Namespace, index: Index, model: LanguageModel, config: AnswerConfig, prompts: Prompts, queries: list[str]
) -> list[StepEstimate]:
    """What each step would spend: of retrieval where it is the model's, and answering from what rules retrieve."""
    dry = DryRun(model)
    if args.llm_steps:
        retriever = load_retriever(index, args.retriever, model=dry, prompts=prompts)
        retriever.retrieve(queries, top_k=args.top_k, batch_size=args.batch_size)
    by_rules = load_retriever(index, args.retriever, prompts=prompts)
    results = by_rules.retrieve(queries, top_k=args.top_k, batch_size=args.batch_size)
    return [*dry.estimates, AnswerWriter(model, config, prompts).estimate(results)]
