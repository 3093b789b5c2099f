# SPDX-License-Identifier: Apache-2.0

import configparser
import logging
import pathlib

from docutils import nodes

project = 'nova-ext-sched release notes'
copyright = 'nova-ext-sched developers'
extensions = ['reno.sphinxext']
html_theme = 'furo'
html_title = 'nova-ext-sched release notes'
html_theme_options = {'top_of_page_buttons': []}

# reno tells each note that it reads.
logging.getLogger('reno').setLevel(logging.WARNING)


def name_next_release(app, doctree):
    """Give the notes before the first tag the version that they are for.

    reno calls them 0.0.0.
    """
    parser = configparser.ConfigParser()
    parser.read(pathlib.Path(__file__).parents[2] / 'setup.cfg')
    for title in doctree.findall(nodes.title):
        if title.astext() == '0.0.0':
            title[:] = [nodes.Text(parser['metadata']['version'])]


def setup(app):
    app.connect('doctree-read', name_next_release)
