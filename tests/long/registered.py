# SPDX-License-Identifier: Apache-2.0

"""What is registered after each of some imports; for test_objects_registry.

Run as a script, in a process of its own, since the order of the imports is
what is tested. It imports nothing of nova's or ours before it is told to.
"""

import importlib
import json
import pkgutil
import sys

from oslo_versionedobjects import base


def registered():
    """Return the classes by name, in the registry and in nova.objects."""
    found = {
        f'registry:{name}': classes
        for name, classes in base.VersionedObjectRegistry.obj_classes().items()
    }
    if nova_objects := sys.modules.get('nova.objects'):
        found |= {
            f'nova.objects:{name}': [value]
            for name, value in vars(nova_objects).items()
            if isinstance(value, type)
        }
    return {
        name: [f'{cls.__module__}.{cls.__name__}' for cls in classes]
        for name, classes in found.items()
    }


def import_nova():
    """Import all of nova's objects."""
    importlib.import_module('nova.objects').register_all()


def import_objects():
    """Import our objects."""
    importlib.import_module('nova_ext_sched.objects')


def import_ours():
    """Import every module of ours."""
    package = importlib.import_module('nova_ext_sched')
    for module in pkgutil.walk_packages(package.__path__, 'nova_ext_sched.'):
        importlib.import_module(module.name)


def main(steps):
    """Print what is registered after each step."""
    taken = []
    for step in steps:
        globals()[f'import_{step}']()
        taken.append(registered())
    print(json.dumps(taken))


if __name__ == '__main__':
    main(sys.argv[1:])
