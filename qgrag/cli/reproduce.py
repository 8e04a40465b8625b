"""`qgrag reproduce`: a paper's results table, made again and shown beside the paper's own numbers."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from qgrag.cli.llm_arguments import add_llm_arguments, with_llm_arguments
from qgrag.cli.parsing import command_parser, options_first
from qgrag.errors import InputError, MissingComponentError, MissingExtraError
from qgrag.evaluation.answers.meteor import Meteor, load_meteor
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.runs.run_folder import write_json
from qgrag.llm.budget_stop import StopAtBudget
from qgrag.llm.load import load_language_model
from qgrag.llm.model import LanguageModel
from qgrag.reproduce.columns import METEOR
from qgrag.reproduce.materials import NamedMaterials, SmokeMaterials
from qgrag.reproduce.recipe import Recipe, load_recipe, recipe_names
from qgrag.reproduce.report import Cells, as_markdown, side_by_side
from qgrag.reproduce.requirements import Need, needs_of
from qgrag.reproduce.running import RunPlaces, run_recipe

DATA_VARIABLE = "QGRAG_DATA"
ALL = "all"
SMOKE_DRAWS = 200

EXAMPLES = """Make a results table of a paper again. A recipe holds its data sets, sizes, models and numbers; what
is missing is listed with how to get it. Runs go on where they stopped and never overwrite each other.

  qgrag reproduce --list                                    the recipes, and what of their needs is here
  qgrag reproduce qcg-table1 --check --data DATA            everything that one needs
  qgrag reproduce qcg-table1 --data DATA --llm-base-url http://localhost:8000/v1 --out runs/qcg-table1
  qgrag reproduce qcg-table1 --data DATA --partial          only the data sets that are here
  qgrag reproduce all --smoke                               every recipe, end to end, with embedded models
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("reproduce", EXAMPLES)
    parser.add_argument("name", type=str, nargs="?", default="", help="a recipe, a YAML file of one, or all")
    parser.add_argument("--list", action="store_true", help="list the recipes")
    parser.add_argument("--check", action="store_true", help="list what the recipe needs, and do nothing")
    parser.add_argument("--smoke", action="store_true", help="5 questions on the demo corpus with embedded models")
    parser.add_argument("--partial", action="store_true", help="run the data sets whose files are here")
    parser.add_argument(
        "--data", type=str | None, default=None, help=f"folder of the data sets' folders; {DATA_VARIABLE} if not given"
    )
    parser.add_argument(
        "--out", type=str | None, default=None, help="folder of the run; runs/reproduce/NAME, or runs/smoke/NAME"
    )
    parser.add_argument("--limit", type=int | None, default=None, help="at most so many questions of a data set")
    add_llm_arguments(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    args = parser.parse_args(options_first(parser, arguments))
    console = Console()
    data = Path(args.data or os.environ[DATA_VARIABLE]) if args.data or os.environ.get(DATA_VARIABLE) else None
    if args.list:
        console.print(recipes_table(data, args))
        return 0
    if not args.name:
        raise InputError("name a recipe, or all; --list shows them")
    codes = [run_one(name, args, data, console) for name in (recipe_names() if args.name == ALL else [args.name])]
    return max(codes)


def run_one(name: str, args: Namespace, data: Path | None, console: Console) -> int:
    """Check and run one recipe; 1 where something that it needs is missing."""
    recipe = with_endpoint(load_recipe(name), args)
    root = Path(args.out) if args.out else Path("runs") / ("smoke" if args.smoke else "reproduce")
    out = root if args.out and args.name != ALL else root / Path(name).stem
    console.rule(f"{Path(name).stem}: {recipe.paper}, {recipe.table}", align="left")
    if args.smoke:
        places = RunPlaces(out, (root if args.name == ALL else out) / "indexes")
        cells = run_recipe(
            recipe,
            SmokeMaterials(recipe),
            places,
            list(recipe.datasets),
            bootstrap=BootstrapConfig(resamples=SMOKE_DRAWS),
            say=lambda text: console.print(text, style="dim", highlight=False),
        )
        finish(recipe, cells, out, console, smoke=True)
        return 0
    needs = needs_of(recipe, data)
    console.print(needs_table(needs))
    if args.check:
        return 0
    missing = [need for need in needs if need.required and not need.here]
    lost = {need.dataset for need in missing}
    kept = [dataset for dataset in recipe.datasets if dataset not in lost]
    if "" in lost or not kept or (lost and not args.partial):
        console.print("Something is missing; see above. --partial runs the data sets that are here.")
        return 1
    assert data is not None
    out.mkdir(parents=True, exist_ok=True)
    with models(recipe, out) as (model, judge):
        materials = NamedMaterials(recipe, data, model, judge, meteor_if_here(recipe), args.limit)
        places = RunPlaces(out, out / "indexes")
        cells = run_recipe(recipe, materials, places, kept, say=lambda text: console.print(text, highlight=False))
    finish(recipe, cells, out, console, smoke=False)
    return 0


def with_endpoint(recipe: Recipe, args: Namespace) -> Recipe:
    """The recipe with the endpoint, model and budgets of the flags; of a judge that is another model the budgets
    alone."""
    own = args.clone()
    if not recipe.judge_is_reader:
        own.llm_base_url = own.llm_model = None
    judge = with_llm_arguments(recipe.judge, own) if recipe.judge is not None else None
    return replace(recipe, llm=with_llm_arguments(recipe.llm, args), judge=judge)


@contextmanager
def models(recipe: Recipe, out: Path) -> Iterator[tuple[LanguageModel, LanguageModel | None]]:
    """Reader and judge, whose answers are kept in the run's folder; where a budget is spent the run stops."""
    cache = out / "llm-cache.sqlite"
    model = load_language_model(recipe.llm, cache)
    judge = load_language_model(recipe.judge, cache) if recipe.judge is not None else None
    try:
        yield StopAtBudget(model), StopAtBudget(judge) if judge is not None else None
    finally:
        model.close()
        if judge is not None:
            judge.close()


def meteor_if_here(recipe: Recipe) -> Meteor | None:
    """METEOR where the table has it and its data are here; its columns stay empty where they are not."""
    if METEOR not in recipe.metrics:
        return None
    try:
        return load_meteor()
    except (MissingExtraError, MissingComponentError):
        return None


def finish(recipe: Recipe, cells: Cells, out: Path, console: Console, *, smoke: bool) -> None:
    """Show the table and write it down."""
    console.print(side_by_side(recipe, cells, smoke=smoke))
    (out / "table.md").write_text(as_markdown(recipe, cells, smoke=smoke), encoding="utf-8")
    values = [
        {"method": method, "column": recipe.columns[number].heading, **asdict(cell)}
        for (method, number), cell in cells.items()
    ]
    write_json(out / "table.json", {"paper": recipe.paper, "table": recipe.table, "smoke": smoke, "cells": values})
    console.print(
        f"written to {out}: table.md, table.json; each data set's run in a folder of its own", highlight=False
    )


def recipes_table(data: Path | None, args: Namespace) -> Table:
    caption = "NAME --check tells what is missing and how to get it"
    table = Table(
        title="recipes, named by paper and table",
        title_justify="left",
        box=SIMPLE_HEAD,
        caption=caption,
        caption_justify="left",
    )
    for column in ("name", "data sets", "model", "missing"):
        table.add_column(column, no_wrap=column != "data sets")
    for name in recipe_names():
        recipe = with_endpoint(load_recipe(name), args)
        needs = needs_of(recipe, data)
        required = [need for need in needs if need.required]
        missing = sum(not need.here for need in required)
        table.add_row(
            name,
            ", ".join(recipe.datasets),
            recipe.llm.model,
            f"{missing} of {len(required)}" if missing else "nothing",
        )
    return table


def needs_table(needs: Sequence[Need]) -> Table:
    table = Table(title="what it needs", title_justify="left", box=SIMPLE_HEAD)
    for column in ("need", "here", "how to get it"):
        table.add_column(column, overflow="fold")
    for need in needs:
        table.add_row(
            need.what, "yes" if need.here else "no" if need.required else "no (advised)", "" if need.here else need.how
        )
    return table
