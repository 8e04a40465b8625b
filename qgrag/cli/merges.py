"""`qgrag merges`: which names of an index are one entity, and which would be."""

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qgrag.cli.parsing import command_parser
from qgrag.index.knowledge.entity_merge import Merge
from qgrag.index.knowledge.merge_preview import preview_index_merges
from qgrag.index.reader import Index

EXAMPLES = """Show which names of an index were merged. With --similarity, show which names a build with that least
cosine would merge or refuse to, and why; nothing is changed. To merge, set knowledge_graph.merge.similarity in the
index's configuration and index again; to undo a merge, put the pair into knowledge_graph.merge.apart.

  qgrag merges my-index
  qgrag merges my-index --similarity 0.9
"""


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("merges", EXAMPLES)
    parser.add_argument("index", type=str, help="folder of an index")
    parser.add_argument("--similarity", type=float | None, default=None, help="least cosine of two names, up to 1")
    parser.add_argument("--limit", type=int, default=50, help="pairs shown")
    args = parser.parse_args(arguments)
    index = Index.open(args.index, verify=False)
    graph = index.knowledge_graph
    if args.similarity is None:
        merges = [Merge(**row) for row in graph.merges.to_pylist()]
        _show(f"{len(merges)} names merged", merges, args.limit)
        return 0
    config = index.config.knowledge_graph
    assert config is not None
    proposals = preview_index_merges(index, replace(config.merge, similarity=args.similarity))
    proposals = [merge for merge in proposals if merge.rule == "similar"]
    refused = sum(bool(merge.refused) for merge in proposals)
    _show(f"{len(proposals) - refused} pairs would be merged, {refused} would not", proposals, args.limit)
    return 0


def _show(title: str, merges: Sequence[Merge], limit: int) -> None:
    console = Console()
    table = Table(title=title, title_justify="left")
    for name in ("name that stays", "name that goes into it", "rule", "cosine", "refused because"):
        table.add_column(name, justify="right" if name == "cosine" else "left")
    for merge in merges[:limit]:
        table.add_row(
            escape(merge.kept), escape(merge.merged), merge.rule, f"{merge.similarity:.3f}", escape(merge.refused)
        )
    console.print(table)
    if len(merges) > limit:
        console.print(f"{len(merges) - limit} more; see --limit", highlight=False)
