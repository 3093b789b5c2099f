# SPDX-License-Identifier: Apache-2.0

project = 'nova-ext-sched release notes'
copyright = 'nova-ext-sched developers'
extensions = ['openstackdocstheme', 'reno.sphinxext']
html_theme = 'openstackdocs'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
master_doc = 'index'
