# SPDX-License-Identifier: Apache-2.0

import importlib.metadata

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
