# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched`` and its subcommands.

The subcommands are the entry points of the namespace
``nova_ext_sched.commands``; each is imported only when it runs.
"""

from collections.abc import Sequence
import importlib.metadata
import sys

NAMESPACE = 'nova_ext_sched.commands'

# As argparse ends for wrong usage.
_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subcommand that ``argv`` names.

    :param argv: arguments, by default those of the process
    :returns: the exit status of the subcommand
    """
    try:
        from cliff import app
        from cliff import commandmanager
    except ImportError as exc:
        print(
            f'nova-ext-sched: the Python package {exc.name} is missing. '
            'Install the extra that has it: '
            'pip install "nova-ext-sched[commands]"',
            file=sys.stderr,
        )
        return _USAGE

    class App(app.App):
        # Warnings and errors alone, unless -v asks for more.
        DEFAULT_VERBOSE_LEVEL = 0

    return App(
        description='Explain, audit and try out placement policies of nova.',
        version=importlib.metadata.version('nova-ext-sched'),
        command_manager=commandmanager.CommandManager(NAMESPACE),
        deferred_help=True,
    ).run(sys.argv[1:] if argv is None else list(argv))


if __name__ == '__main__':
    sys.exit(main())
