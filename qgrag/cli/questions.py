"""`qgrag questions`: broad questions about a corpus, for query-focused summaries."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser
from rich.console import Console
from rich.markup import escape

from qgrag.cli.exit_codes import DONE, PARTLY
from qgrag.cli.llm_arguments import add_asking_arguments, cache_beside, open_language_model
from qgrag.cli.outputs import check_output_file
from qgrag.cli.parsing import command_parser
from qgrag.cli.show import show_problems
from qgrag.errors import InputError
from qgrag.evaluation.answers.broad_questions import LLMQuestionMaker, LocalQuestionMaker, QFSConfig, QuestionMaker
from qgrag.evaluation.datasets import DATASETS, load_documents
from qgrag.files import write_json_lines
from qgrag.llm.prompts import Prompts
from qgrag.llm.wrappers import StopAtBudget

EXAMPLES = """Make questions that need an understanding of a whole corpus: for 5 kinds of user, 5 tasks each, and 5
questions per task. A language model makes them if one is named, else rules do. The corpus needs no questions of its
own. qgrag eval takes the file as --questions.

  qgrag questions --dataset demo --out qfs.jsonl
  qgrag questions --dataset jsonl --data my-documents --llm llm.yaml --out qfs.jsonl
  qgrag questions --dataset ultradomain --data DATA/ultradomain/mix --llm llm.yaml --out DATA/ultradomain/mix/qfs.jsonl
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("questions", EXAMPLES)
    parser.add_argument("--dataset", choices=DATASETS, required=True, help="format of the corpus")
    parser.add_argument("--data", type=str | None, default=None, help="folder of its files; demo needs none")
    parser.add_argument("--out", type=str, required=True, help="file to write; one that is there is not replaced")
    parser.add_class_arguments(QFSConfig, "qfs")
    add_asking_arguments(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    args = parser.instantiate_classes(parser.parse_args(list(arguments)))
    out = Path(args.out)
    check_output_file(args.out, "--out")
    if out.exists():
        raise InputError(f"{out}: is there already; name another file (--out)")
    console = Console()
    corpus = load_documents(args.dataset, Path(args.data) if args.data else None)
    show_problems(console, corpus.problems, "note")
    with open_language_model(args, cache_beside(args.out)) as model:
        make: QuestionMaker
        make = (
            LLMQuestionMaker(StopAtBudget(model), args.qfs, Prompts(args.prompts))
            if model
            else LocalQuestionMaker(args.qfs)
        )
        questions = make(corpus.documents)
    if not questions:
        raise InputError("no question could be made about this corpus; nothing is written")
    write_json_lines(out, (question.to_dict() for question in questions))
    who = "a language model" if model else "rules"
    asked = "" if len(questions) == args.qfs.total else f" of the {args.qfs.total} asked for"
    console.print(f"{len(questions)} questions{asked}, by {who}, written to {escape(str(out))}", highlight=False)
    show_problems(console, make.failed, "failed")
    return PARTLY if make.failed else DONE
