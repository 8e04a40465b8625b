"""`qgrag reproduce`: a paper's results table, made again and shown beside the paper's own numbers."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console

from qgrag.cli.exit_codes import DONE, FOUND
from qgrag.cli.llm_arguments import add_llm_arguments, with_llm_arguments
from qgrag.cli.outputs import check_output_folder
from qgrag.cli.parsing import command_parser, options_first
from qgrag.cli.unfinished import keep_unfinished
from qgrag.errors import InputError
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.reproduce.materials import NamedMaterials, SmokeMaterials, meteor_if_here, open_models
from qgrag.reproduce.recipe import Recipe, load_recipe, recipe_names
from qgrag.reproduce.report import needs_table, recipes_table, side_by_side, write_table
from qgrag.reproduce.requirements import needs_of
from qgrag.reproduce.running import RunPlaces, failed_answers, run_recipe

DATA_VARIABLE = "QGRAG_DATA"
ALL = "all"
SMOKE_DRAWS = 200

EXAMPLES = """Make a results table of a paper again. A recipe holds the table's data sets, sizes, models and numbers;
what is missing is listed with how to get it. The same command continues a run that was stopped; runs never overwrite
each other.

  qgrag reproduce --list                                    the recipes, and what of their needs is here
  qgrag reproduce qcg-table1 --check --data DATA            everything that one needs
  qgrag reproduce qcg-table1 --data DATA --llm-base-url http://localhost:8000/v1 --out runs/qcg-table1
  qgrag reproduce qcg-table1 --data DATA --partial          only the data sets that are here
  qgrag reproduce all --smoke                               every recipe, end to end, on the demo corpus
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("reproduce", EXAMPLES)
    parser.add_argument("name", type=str, nargs="?", default="", help="a recipe, a YAML file of one, or all")
    parser.add_argument("--list", action="store_true", help="list the recipes")
    parser.add_argument("--check", action="store_true", help="list what the recipe needs, and do nothing")
    parser.add_argument(
        "--smoke", action="store_true", help="5 questions on the demo corpus with models that come with the package"
    )
    parser.add_argument("--partial", action="store_true", help="run the data sets whose files are here")
    parser.add_argument(
        "--data", type=str | None, default=None, help=f"folder of the data sets' folders; {DATA_VARIABLE} if not given"
    )
    parser.add_argument(
        "--out", type=str | None, default=None, help="folder of the run; runs/reproduce/NAME, or runs/smoke/NAME"
    )
    parser.add_argument("--limit", type=int | None, default=None, help="most questions asked per data set")
    add_llm_arguments(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    args = parser.parse_args(options_first(parser, arguments))
    console = Console()
    data = Path(args.data or os.environ[DATA_VARIABLE]) if args.data or os.environ.get(DATA_VARIABLE) else None
    if args.list:
        recipes = {name: with_endpoint(load_recipe(name), args) for name in recipe_names()}
        console.print(recipes_table({name: (recipe, needs_of(recipe, data)) for name, recipe in recipes.items()}))
        return 0
    if not args.name:
        raise InputError("name a recipe, or all; --list shows them")
    if args.out:
        check_output_folder(args.out)
    names = recipe_names() if args.name == ALL else [args.name]
    return max([run_one(name, args, arguments, data, console) for name in names])


def run_one(name: str, args: Namespace, arguments: Sequence[str], data: Path | None, console: Console) -> int:
    """Check and run one recipe; the exit code: `FOUND` if something that it needs is missing."""
    recipe = with_endpoint(load_recipe(name), args)
    root = Path(args.out) if args.out else Path("runs") / ("smoke" if args.smoke else "reproduce")
    out = root if args.out and args.name != ALL else root / Path(name).stem
    console.rule(f"{Path(name).stem}: {recipe.paper}, {recipe.table}", align="left")
    kept = list(recipe.datasets)
    if args.smoke:
        places = RunPlaces(out, (root if args.name == ALL else out) / "indexes")
        draws, materials = BootstrapConfig(resamples=SMOKE_DRAWS), SmokeMaterials(recipe)
        cells = run_recipe(recipe, materials, places, kept, bootstrap=draws, say=_say(console, "dim"))
    else:
        needs = needs_of(recipe, data)
        console.print(needs_table(needs))
        if args.check:
            return DONE
        lost = {need.dataset for need in needs if need.required and not need.here}
        kept = [dataset for dataset in recipe.datasets if dataset not in lost]
        if data is None or "" in lost or not kept or (lost and not args.partial):
            console.print("Something is missing; see above. --partial runs the data sets that are here.")
            return FOUND
        out.mkdir(parents=True, exist_ok=True)
        with open_models(recipe, out) as (model, judge):
            named = NamedMaterials(recipe, data, model, judge, meteor_if_here(recipe), args.limit)
            cells = run_recipe(recipe, named, RunPlaces(out, out / "indexes"), kept, say=_say(console))
    console.print(side_by_side(recipe, cells, smoke=args.smoke))
    write_table(recipe, cells, out, smoke=args.smoke)
    console.print(f"written to {out}: table.md, table.json, and one folder per data set", highlight=False)
    return keep_unfinished(out, "reproduce", arguments, [] if args.smoke else failed_answers(recipe, out, kept))


def _say(console: Console, style: str | None = None) -> Callable[[str], None]:
    return lambda text: console.print(text, style=style, highlight=False)


def with_endpoint(recipe: Recipe, args: Namespace) -> Recipe:
    """The recipe with the endpoint, model and budgets of the flags. A judge of its own gets the budgets alone."""
    own = args.clone()
    if not recipe.judge_is_reader:
        own.llm_base_url = own.llm_model = None
    judge = with_llm_arguments(recipe.judge, own) if recipe.judge is not None else None
    return replace(recipe, llm=with_llm_arguments(recipe.llm, args), judge=judge)
