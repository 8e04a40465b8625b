"""What a reader sees of recipes: their needs, and the paper's table beside ours, on screen, as Markdown and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from qgrag.evaluation.runs.report import markdown_table
from qgrag.evaluation.runs.run_folder import write_json
from qgrag.reproduce.cells import Cell
from qgrag.reproduce.recipe import Recipe
from qgrag.reproduce.requirements import Need

NOTHING = "-"
Cells = Mapping[tuple[str, int], Cell]


def side_by_side(recipe: Recipe, cells: Cells, *, smoke: bool = False) -> Table:
    """For `rich.console.Console.print`: in each cell the paper's number above ours."""
    what = "SMOKE RUN: the figures below the paper's mean nothing" if smoke else "the paper's number above ours"
    table = Table(
        title=f"{recipe.paper}, {recipe.table}: {recipe.about} ({what})",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=0,
        show_lines=True,
    )
    table.add_column("method", overflow="fold")
    for column in recipe.columns:
        table.add_column(column.heading.replace(" ", "\n"), justify="right", overflow="fold")
    for row in recipe.rows:
        published = row.published or (None,) * len(recipe.columns)
        table.add_row(
            row.method,
            *(f"{_paper(number)}\n{_ours(cells.get((row.method, i)))}" for i, number in enumerate(published)),
        )
    return table


def as_markdown(recipe: Recipe, cells: Cells, *, smoke: bool = False) -> str:
    """The same as a Markdown document: a cell is `paper / ours (interval)`."""
    rows = []
    for row in recipe.rows:
        published = row.published or (None,) * len(recipe.columns)
        rows.append(
            [row.method]
            + [f"{_paper(number)} / {_ours(cells.get((row.method, i)))}" for i, number in enumerate(published)]
        )
    lines = [f"# {recipe.paper}, {recipe.table}", "", recipe.about, ""]
    if smoke:
        lines += ["A smoke run: embedded models on a handful of documents. The figures mean nothing.", ""]
    lines += ["Each cell: the paper's number / ours, with the interval of a bootstrap over questions.", ""]
    lines += [markdown_table(["method", *(column.heading for column in recipe.columns)], rows)]
    lines += [f"- {note}" for note in recipe.notes]
    return "\n".join(lines) + "\n"


def write_table(recipe: Recipe, cells: Cells, out: Path, *, smoke: bool) -> None:
    """Write `table.md` and `table.json` in the folder of a run."""
    (out / "table.md").write_text(as_markdown(recipe, cells, smoke=smoke), encoding="utf-8")
    values = [
        {"method": method, "column": recipe.columns[number].heading, **asdict(cell)}
        for (method, number), cell in cells.items()
    ]
    write_json(out / "table.json", {"paper": recipe.paper, "table": recipe.table, "smoke": smoke, "cells": values})


def recipes_table(needs: Mapping[str, tuple[Recipe, Sequence[Need]]]) -> Table:
    """One row per recipe with how much of what it needs is missing.

    Args:
        needs: by the recipe's name.
    """
    table = Table(
        title="recipes, named by paper and table",
        title_justify="left",
        box=SIMPLE_HEAD,
        caption="NAME --check tells what is missing and how to get it",
        caption_justify="left",
    )
    for column in ("name", "data sets", "model", "missing"):
        table.add_column(column, no_wrap=column != "data sets")
    for name, (recipe, own) in needs.items():
        required = [need for need in own if need.required]
        missing = sum(not need.here for need in required)
        share = f"{missing} of {len(required)}" if missing else "nothing"
        table.add_row(name, ", ".join(recipe.datasets), recipe.llm.model, share)
    return table


def needs_table(needs: Sequence[Need]) -> Table:
    """One row per need: whether it is here, and how to get it where it is not."""
    table = Table(title="what it needs", title_justify="left", box=SIMPLE_HEAD)
    for column in ("need", "here", "how to get it"):
        table.add_column(column, overflow="fold")
    for need in needs:
        table.add_row(
            need.what, "yes" if need.here else "no" if need.required else "no (advised)", "" if need.here else need.how
        )
    return table


def _paper(number: float | None) -> str:
    return NOTHING if number is None else f"{number:,.2f}"


def _ours(cell: Cell | None) -> str:
    if cell is None:
        return NOTHING
    interval = f" ({cell.low:.1f}-{cell.high:.1f})" if cell.low is not None and cell.high is not None else ""
    return f"{cell.value:,.2f}{interval}"
