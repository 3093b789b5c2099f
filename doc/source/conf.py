# SPDX-License-Identifier: Apache-2.0

import importlib.metadata

from cliff import sphinxext

project = 'nova-ext-sched'
copyright = 'nova-ext-sched developers'
release = importlib.metadata.version('nova-ext-sched')
version = release
extensions = [
    'cliff.sphinxext',
    'oslo_config.sphinxext',
    'sphinx.ext.autodoc',
]
highlight_language = 'none'
# Two hyphens begin an option.
smartquotes_action = 'qe'
html_theme = 'furo'
html_title = 'nova-ext-sched'
html_static_path = ['_static']
html_css_files = ['narrow.css']
html_theme_options = {'top_of_page_buttons': []}


def _as_help_prints(format_action):
    """Have cliff's extension show an option as --help does.

    argparse fills in defaults, and names all values of an option.
    """

    def formatted(action):
        if action.help:
            action.help %= vars(action)
        if isinstance(action.metavar, tuple):
            action.metavar = ' '.join(action.metavar)
        return format_action(action)

    return formatted


for name in ('_format_positional_action', '_format_optional_action'):
    setattr(sphinxext, name, _as_help_prints(getattr(sphinxext, name)))
