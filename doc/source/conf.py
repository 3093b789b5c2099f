# SPDX-License-Identifier: Apache-2.0

import importlib.metadata

from cliff import sphinxext
from docutils import nodes
from docutils import statemachine
from sphinx.util import docutils

from nova_ext_sched import plugins

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


class Policies(docutils.SphinxDirective):
    """A table of the policies, from their declarations."""

    def run(self):
        host_filters = plugins.load(
            plugins.HOST_FILTERS, lambda name, plugin: None, ''
        )
        declared = {
            one.name: one for cls in host_filters for one in cls.policies
        }
        lines = [
            '.. list-table::',
            '   :header-rows: 1',
            '',
            '   * - Policy',
            '     - What it does',
            '     - Filters',
            '     - Turned on by',
        ]
        for name, policy in sorted(declared.items()):
            stages = [policy.request_filter, policy.host_filter]
            lines += [
                f'   * - ``{name}``',
                f'     - {policy.summary}',
                '     - ' + ', '.join(f'``{one}``' for one in stages if one),
                f'     - {policy.turned_on_by or "its filters"}',
            ]
        return self.parse_text_to_nodes(
            statemachine.StringList(lines, 'policies'),
            allow_section_headings=False,
        )


def name_messages(app, doctree):
    """Give each message of the page on operating an anchor of its name."""
    if app.env.docname != 'operating':
        return
    for item in doctree.findall(nodes.definition_list_item):
        for classifier in item.findall(nodes.classifier):
            item.next_node(nodes.term)['ids'].append(
                f'message-{classifier.astext()}'
            )


def setup(app):
    app.add_directive('policies', Policies)
    app.connect('doctree-read', name_messages)
