"""`python -m lakebed.cli`: the program without its script."""

from lakebed.cli.main import main

main()
