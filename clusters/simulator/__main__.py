"""`python -m clusters.simulator`: the same as `manage.py simulate_cluster`, without Django."""

import argparse
import sys

from clusters.simulator.server import add_arguments, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m clusters.simulator", description=__doc__)
    add_arguments(parser)
    return run(vars(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
