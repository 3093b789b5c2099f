# SPDX-License-Identifier: Apache-2.0

import importlib
import importlib.metadata
import inspect
import pathlib
import sys

from cliff import sphinxext
from docutils import nodes
from docutils import statemachine
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util import docutils

from nova_ext_sched import plugins
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.watch import metrics

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import nova_conf
import tables

project = 'nova-ext-sched'
copyright = 'nova-ext-sched developers'
release = importlib.metadata.version('nova-ext-sched')
version = release
extensions = [
    'cliff.sphinxext',
    'oslo_config.sphinxext',
    'sphinx.ext.autodoc',
    'sphinx_copybutton',
]
highlight_language = 'none'
# Two hyphens begin an option.
smartquotes_action = 'qe'
# What is typed after a prompt, its further lines too; all of other blocks.
copybutton_prompt_text = '$ '
copybutton_line_continuation_character = '\\'
# cliff's own options of each command are listed once, on the page of all.
autoprogram_cliff_ignored = [
    '--help',
    '--format',
    '--column',
    '--quote',
    '--noindent',
    '--max-width',
    '--fit-width',
    '--print-empty',
    '--sort-column',
    '--sort-ascending',
    '--sort-descending',
]
html_theme = 'furo'
html_title = 'nova-ext-sched'
html_static_path = ['_static']
html_css_files = ['narrow.css']
html_js_files = ['narrow.js']
html_theme_options = {'top_of_page_buttons': []}
# A page of each command, as nova-ext-sched-explain.1, and one of all. Two
# commands of one page have the name of its first.
man_pages = [
    (
        'cli/index',
        'nova-ext-sched',
        'explain and plan what nova-scheduler does',
        [copyright],
        1,
    )
]
man_pages += [
    (
        f'cli/{one.page}',
        '-'.join(one.command.split()),
        one.question,
        [copyright],
        1,
    )
    for one in reversed(
        {one.page: one for one in reversed(tables.read_commands())}.values()
    )
]


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


def _with_whole_words(format_usage):
    """Have cliff's extension break no option with a bracket in its value.

    It takes the first closing bracket for that of the option.
    """

    def formatted(parser):
        whole = ['']
        for line in format_usage(parser):
            if whole[-1].count('[') > whole[-1].count(']'):
                whole[-1] += line.strip()
            else:
                whole.append(line)
        return whole[1:]

    return formatted


for name in ('_format_positional_action', '_format_optional_action'):
    setattr(sphinxext, name, _as_help_prints(getattr(sphinxext, name)))
sphinxext._format_usage = _with_whole_words(sphinxext._format_usage)


class NovaConf(docutils.SphinxDirective):
    """The lines of a policy for nova.conf: its filters, its options."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = {'caption': directives.unchanged}

    def run(self):
        filled = nova_conf.fill(
            ' '.join(self.arguments), '\n'.join(self.content)
        )
        caption = self.options.get('caption', 'nova.conf')
        lines = ['.. code-block:: ini', f'   :caption: {caption}', '']
        lines += [f'   {line}' for line in filled.splitlines()]
        return self.parse_text_to_nodes(
            statemachine.StringList(lines, self.name)
        )


class Picture(docutils.SphinxDirective):
    """A sample in the colours of a terminal, and its text where it is opened.

    The picture stands beside the file; tests/samples.py writes both.
    """

    required_arguments = 1
    option_spec = {'language': directives.unchanged}

    def run(self):
        (name,) = self.arguments
        image = nodes.image(
            uri=name.removesuffix('.txt') + '.svg',
            alt='What the command prints, in colour; its text follows.',
        )
        lines = [
            f'.. literalinclude:: {name}',
            f'   :language: {self.options["language"]}',
        ]
        return [
            # A man page has the text alone.
            addnodes.only(
                '',
                nodes.container('', image, classes=['terminal']),
                expr='html',
            ),
            nodes.raw(
                '', '<details><summary>As text</summary>', format='html'
            ),
            *self.parse_text_to_nodes(
                statemachine.StringList(lines, self.name)
            ),
            nodes.raw('', '</details>', format='html'),
        ]


class Table(docutils.SphinxDirective):
    """A table of what the code declares."""

    def run(self):
        head, *rows = self.read()
        lines = [
            '.. list-table::',
            '   :class: names',
            '   :header-rows: 1',
            '',
        ]
        for row in (head, *rows):
            for mark, cell in zip('*' + ' ' * len(row), row, strict=False):
                lines.append(f'   {mark} - {cell}')
        return self.parse_text_to_nodes(
            statemachine.StringList(lines, self.name),
            allow_section_headings=False,
        )


class Commands(docutils.SphinxDirective):
    """Every command, as a card or as a list of questions."""

    option_spec = {
        'form': lambda given: directives.choice(given, ('card', 'questions'))
    }

    def run(self):
        self.env.note_dependency(str(tables.COMMANDS))
        commands = tables.read_commands()
        if self.options['form'] == 'card':
            lines = [
                '.. list-table::',
                '   :class: card',
                '   :header-rows: 1',
                '   :widths: 21 28 33 18',
                '',
            ]
            rows = [('Command', 'Its question', 'An example', 'Exit status 3')]
            rows += [
                (
                    f':doc:`{one.command} </cli/{one.page}>` ({one.part})',
                    one.question,
                    f'``{one.example}``',
                    one.three,
                )
                for one in commands
            ]
            for row in rows:
                for mark, cell in zip('*   ', row, strict=True):
                    lines.append(f'   {mark} - {cell}')
        else:
            lines = [
                f'* {one.question} :doc:`/cli/{one.page}`' for one in commands
            ]
        return self.parse_text_to_nodes(
            statemachine.StringList(lines, self.name)
        )


class Policies(Table):
    """The policies, from their declarations."""

    def read(self):
        yield 'Policy', 'What it does', 'Filters and weigher', 'Turned on by'
        declared = {
            one.name: one
            for namespace in (plugins.HOST_FILTERS, plugins.WEIGHERS)
            for cls in plugins.load(namespace, lambda *_: None, '')
            for one in cls.policies
        }
        for name, policy in sorted(declared.items()):
            stages = [
                policy.request_filter,
                policy.host_filter,
                policy.weigher,
            ]
            yield (
                f'``{name}``',
                policy.summary,
                ', '.join(f'``{one}``' for one in stages if one),
                policy.turned_on_by or 'naming it',
            )


class Decisions(docutils.SphinxDirective):
    """A table of decisions, from the docstring of the module that decides.

    Its tests have the same rows. The option says which of several it is.
    """

    required_arguments = 1
    option_spec = {'number': directives.positive_int}

    def run(self):
        module = importlib.import_module(self.arguments[0])
        found = [
            block
            for block in inspect.cleandoc(module.__doc__).split('\n\n')
            if block.startswith('===')
        ]
        return self.parse_text_to_nodes(
            found[self.options.get('number', 1) - 1]
        )


class Faults(Table):
    """What can be wrong with an isolated aggregate, for programs."""

    def read(self):
        yield 'fault', 'What it means', 'What to do'
        for name, fault in isolation_findings.FAULTS.items():
            yield f'``{name}``', f'{fault.consequence}.', f'{fault.remedy}.'


class Scenario(Table):
    """The keys of a part of a scenario, from its schema."""

    required_arguments = 1

    def read(self):
        (part,) = self.arguments
        yield 'Key', 'Value' if part != 'steps' else 'Keys beside it'
        yield from tables.describe_scenario(part)


class Security(docutils.SphinxDirective):
    """What each input can do; its tests are in the table alone."""

    def run(self):
        self.env.note_dependency(str(tables.SECURITY))
        return self.parse_text_to_nodes(
            tables.write_security(), allow_section_headings=True
        )


class Metrics(Table):
    """The metrics of the watcher."""

    def read(self):
        yield 'Metric', 'What it is'
        watched = metrics.Metrics()
        watched.looked_at({}, ())
        for family in watched.registry.collect():
            if family.name.startswith('nova_ext_sched'):
                total = '_total' if family.type == 'counter' else ''
                yield f'``{family.name}{total}``', family.documentation


class Promises(Table):
    """The clouds of which the promises are asked."""

    def read(self):
        yield 'Cloud', 'Not asked, or not kept'
        yield from tables.describe_promises()


class Messages(docutils.SphinxDirective):
    """The messages that operators read, in their sections."""

    def run(self):
        self.env.note_dependency(str(tables.MESSAGES))
        return self.parse_text_to_nodes(
            tables.write_messages(), allow_section_headings=True
        )


def name_messages(app, doctree):
    """Give each message of the page of messages an anchor of its name."""
    if app.env.docname != 'reference/messages':
        return
    for item in doctree.findall(nodes.definition_list_item):
        for classifier in item.findall(nodes.classifier):
            item.next_node(nodes.term)['ids'].append(
                f'message-{classifier.astext()}'
            )


def setup(app):
    app.add_directive('commands', Commands)
    app.add_directive('decisions', Decisions)
    app.add_directive('faults', Faults)
    app.add_directive('messages', Messages)
    app.add_directive('metrics', Metrics)
    app.add_directive('nova-conf', NovaConf)
    app.add_directive('picture', Picture)
    app.add_directive('policies', Policies)
    app.add_directive('promises', Promises)
    app.add_directive('scenario', Scenario)
    app.add_directive('security', Security)
    app.connect('doctree-read', name_messages)
