# SPDX-License-Identifier: Apache-2.0

import importlib.metadata

project = 'nova-ext-sched'
copyright = 'nova-ext-sched developers'
release = importlib.metadata.version('nova-ext-sched')
extensions = [
    'cliff.sphinxext',
    'openstackdocstheme',
    'oslo_config.sphinxext',
    'sphinx.ext.autodoc',
]
html_theme = 'openstackdocs'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
master_doc = 'index'
pygments_style = 'native'
