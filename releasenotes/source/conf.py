# SPDX-License-Identifier: Apache-2.0

project = 'nova-ext-sched release notes'
copyright = 'nova-ext-sched developers'
extensions = ['reno.sphinxext']
html_theme = 'furo'
html_title = 'nova-ext-sched release notes'
