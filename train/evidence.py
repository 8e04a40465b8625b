import sys

from qgrag.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", "evidence", *sys.argv[1:]]))
