# SPDX-License-Identifier: Apache-2.0

"""Virtual environments from PyPI, one for each service, kept between runs.

They stand in ``.tox/cloud-environments``, or in the folder that the
environment variable NOVA_EXT_SCHED_TEST_CLOUD names. The services are those
of a release of nova: NOVA_EXT_SCHED_TEST_RELEASE, or the newest.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

import psutil

from tests.cloud import processes

ROOT = pathlib.Path(__file__).parents[2]
CACHE = pathlib.Path(
    os.environ.get(
        'NOVA_EXT_SCHED_TEST_CLOUD', ROOT / '.tox' / 'cloud-environments'
    )
)

#: The major releases that belong to a release of nova. neutron says only how
#: old its library may be.
RELEASES = {
    '29': {
        'cinder': 24,
        'glance': 28,
        'keystone': 25,
        'neutron': 24,
        'neutron-lib': 3,
        'nova': 29,
        'openstack-placement': 11,
    },
    '31': {
        'cinder': 26,
        'glance': 30,
        'keystone': 27,
        'neutron': 26,
        'neutron-lib': 3,
        'nova': 31,
        'openstack-placement': 13,
    },
    '33': {
        'cinder': 28,
        'glance': 32,
        'keystone': 29,
        'neutron': 28,
        'neutron-lib': 3,
        'nova': 33,
        'openstack-placement': 15,
    },
    '34': {
        'cinder': 29,
        'glance': 33,
        'keystone': 30,
        'neutron': 29,
        'neutron-lib': 5,
        'nova': 34,
        'openstack-placement': 16,
    },
}
#: Of nova, where nothing else is said.
RELEASE = os.environ.get('NOVA_EXT_SCHED_TEST_RELEASE', '34')
#: A file in a cloud's folder, which lists its environments.
USED = 'environments'
#: What every service needs: a database driver, a web server, and what
#: keystonemiddleware imports for its cache.
COMMON = ('pymysql', 'pyuwsgi', 'python-memcached')


def program(directory, name):
    """Return the path of a console script.

    :raises FileNotFoundError: where the environment does not have it
    """
    path = shutil.which(name, path=directory)
    if path is None:
        raise FileNotFoundError(f'{name} is not in {directory}')
    return path


def here():
    """Return the folder of programs of this process' own environment."""
    return pathlib.Path(sys.executable).parent


def build(name, packages, release=RELEASE, editable=None):
    """Build an environment unless it stands; return its folder of programs.

    :param name: of the environment
    :param packages: requirements; a package of ``RELEASES`` gets the version
        that belongs to the release of nova
    :param release: of nova
    :param editable: what to install of this repository, extras included
    """
    folder, constraints, requirements, wanted = _plan(
        name, packages, release, editable
    )
    folder.mkdir(parents=True, exist_ok=True)
    # Two runs at the same time build an environment once.
    with folder.with_suffix('.lock').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Written when the rest is there.
        built = folder / 'built.txt'
        if not built.exists():
            _install(folder, ['-c', str(constraints), *requirements])
            built.write_text(wanted)
    return folder / 'bin'


def clean(environments):
    """Remove the environments that nothing needs any more; return them.

    Those of a cloud that stands are kept, whoever started it.

    :param environments: arguments of ``build`` for each that is needed
    """
    needed = {_plan(*arguments)[0] for arguments in environments}
    used = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, KeyError, OSError):
            cloud = pathlib.Path(process.environ()[processes.MARK])
            used.update(map(pathlib.Path, (cloud / USED).read_text().split()))
    old = [
        folder
        for folder in sorted(CACHE.glob('*/*'))
        if folder.is_dir() and folder not in needed | used
    ]
    for folder in old:
        shutil.rmtree(folder)
        folder.with_suffix('.lock').unlink(missing_ok=True)
    return old


def _plan(name, packages, release=RELEASE, editable=None):
    """Return an environment's folder, constraints, requirements and text."""
    majors = RELEASES[release]
    requirements = [
        f'{package}=={majors[package]}.*' if package in majors else package
        for package in packages
    ]
    # Older services need the libraries of their day.
    constraints = ROOT / 'constraints' / f'nova{release}.txt'
    if not constraints.exists():
        constraints = ROOT / 'constraints.txt'
    wanted = [sys.version, constraints.read_text()]
    if editable:
        requirements += ['-e', f'{ROOT}{editable}']
        # What is installed of it once: the code is read where it stands.
        wanted.append((ROOT / 'setup.cfg').read_text())
    wanted = '\n'.join([*wanted, *requirements])
    # An environment is not changed: a cloud may stand on it.
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:8]
    folder = CACHE / release / f'{name}-{digest}'
    return folder, constraints, requirements, wanted


def _install(folder, arguments):
    print(f'Installing {folder.name} ...', file=sys.stderr, flush=True)
    subprocess.run(
        [sys.executable, '-m', 'venv', '--clear', folder], check=True
    )
    python = folder / 'bin' / 'python'
    # uv is faster; pip comes with Python.
    uv = shutil.which('uv')
    pip = (
        [uv, 'pip', 'install', '--python', python]
        if uv
        else [python, '-m', 'pip', 'install', '--prefer-binary']
    )
    done = subprocess.run(
        [*pip, '-q', *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={'PBR_VERSION': '1.0.0', **os.environ},
    )
    if done.returncode:
        raise RuntimeError(f'{folder.name}:\n{done.stdout[-4000:]}')
