# SPDX-License-Identifier: Apache-2.0

"""What the documentation types, as far as keystone, placement and nova go.

nova, placement and the commands are those of the environment that the test
runs in.
"""

from tests.cloud import environments
from tests.cloud import forms
from tests.cloud import keystone
from tests.cloud import test_documentation

#: What a line has that wants images, and so servers too.
NOT_HERE = (
    ' SERVER',
    ' image ',
    ' --image ',
    ' --server ',
    ' save ',
    ' server create ',
    ' server event ',
    ' server migrate ',
    ' server rebuild ',
    ' server set ',
)


class SmallestTestCase(test_documentation.DocumentationTestCase):
    form = forms.SMALLEST
    # osc-placement is not in this environment.
    test_placement_knows_what_the_page_says = None

    @staticmethod
    def programs(class_):
        if class_ is keystone.Keystone:
            return None
        return environments.here()

    def lines(self, path):
        return [
            (block, line)
            for block, line in super().lines(path)
            if not any(word in line for word in NOT_HERE)
        ]

    def suppose(self):
        self.suppose_hosts()
        return {'PROJECT_ID': self.member.current_project_id}
