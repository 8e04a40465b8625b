"""A paper's table beside ours, for the terminal and as Markdown."""

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table

from qgrag.evaluation.markdown import markdown_table
from qgrag.reproduce.cells import Cell
from qgrag.reproduce.recipe import Recipe

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


def _paper(number: float | None) -> str:
    return NOTHING if number is None else f"{number:,.2f}"


def _ours(cell: Cell | None) -> str:
    if cell is None:
        return NOTHING
    interval = f" ({cell.low:.1f}-{cell.high:.1f})" if cell.low is not None and cell.high is not None else ""
    return f"{cell.value:,.2f}{interval}"
