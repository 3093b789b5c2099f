# SPDX-License-Identifier: Apache-2.0

"""A keystone that tells its projects; nova's own fixtures have none."""

import fixtures


class Projects(fixtures.MonkeyPatch):
    """Tells which projects there are; each is named by its ID."""

    def __init__(self, *ids):
        told = [{'id': one, 'name': one} for one in ids]
        super().__init__(
            'nova_ext_sched.dryrun.cloud.projects.list_projects', lambda: told
        )
