"""`qgrag check`: look for damage and orphans in an index."""

from collections.abc import Sequence

from qgrag.cli.exit_codes import DONE, FOUND
from qgrag.cli.parsing import command_parser
from qgrag.index.reader import Index


def run(arguments: Sequence[str]) -> int:
    parser = command_parser(
        "check",
        "Re-read every file of an index against its checksum, and look for nodes, vectors and edges that belong\n"
        "to nothing. The exit code is 1 if something is found.",
    )
    parser.add_argument("index", type=str, help="folder of an index")
    args = parser.parse_args(arguments)
    index = Index.open(args.index, verify=False)
    problems = index.check()
    for problem in problems:
        print(problem)
    counts = index.manifest.counts
    print(f"{args.index}: {len(problems)} problems in {counts['documents']} documents, {counts['chunks']} chunks")
    return FOUND if problems else DONE
