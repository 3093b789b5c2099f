# SPDX-License-Identifier: Apache-2.0

"""Make the files of a release, in the folder dist: tox -e release.

The sdist and the wheel (the same bytes from the same commit), release notes,
an SBOM of the wheel with each extra, what is known to be vulnerable of these,
and SHA256SUMS of all. With ``--rehearse`` it makes them of a commit that is no
release, and ends with what is missing.
"""

import argparse
import configparser
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
EXTRAS = ('', 'commands', 'offline', 'openstackclient', 'simulator')


def read_config():
    """Return setup.cfg."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / 'setup.cfg')
    return config


def find_missing(config, tags, is_clean):
    """Return what keeps a commit from being a release, a sentence each.

    :param config: setup.cfg
    :param tags: those of the commit
    :param is_clean: whether the working tree is what was committed
    """
    missing = [
        f'setup.cfg, [addresses]: {name} is empty.'
        for name, value in config['addresses'].items()
        if not value
    ]
    version = config['metadata']['version']
    if version not in tags:
        missing.append(f'This commit has no tag {version}.')
    if not is_clean:
        missing.append('Files differ from what was committed.')
    return missing


def normalize(path, seconds):
    """Write an sdist anew, with nothing of the machine and the clock in it.

    :param seconds: the time of each entry, since the epoch
    """
    packed = io.BytesIO()
    with (
        tarfile.open(path) as old,
        tarfile.open(
            fileobj=packed, mode='w', format=tarfile.PAX_FORMAT
        ) as new,
    ):
        for entry in sorted(old.getmembers(), key=lambda one: one.name):
            entry.mtime, entry.uid, entry.gid = seconds, 0, 0
            entry.uname = entry.gname = ''
            is_program = entry.isdir() or entry.mode & 0o100
            entry.mode = 0o755 if is_program else 0o644
            entry.pax_headers = {}
            new.addfile(entry, old.extractfile(entry))
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=seconds))


def run(*command, **options):
    """Return what a command prints.

    :raises subprocess.CalledProcessError: it fails
    """
    options = {'cwd': ROOT, 'text': True, 'check': True} | options
    return subprocess.run(
        [*map(str, command)], stdout=subprocess.PIPE, **options
    ).stdout


def build(folder, version, seconds):
    """Build sdist and wheel into a folder; return both."""
    environment = {
        **os.environ,
        'SOURCE_DATE_EPOCH': str(seconds),
        'PBR_VERSION': version,
    }
    program = (sys.executable, '-m', 'build', '--no-isolation')
    run(*program, '--outdir', folder, env=environment)
    [sdist], [wheel] = folder.glob('*.tar.gz'), folder.glob('*.whl')
    normalize(sdist, seconds)
    return sdist, wheel


def build_twice(dist, version, seconds):
    """Build into a folder; return the wheel.

    :raises SystemExit: a second time makes other files
    """
    made = build(dist, version, seconds)
    with tempfile.TemporaryDirectory() as again:
        for one in build(pathlib.Path(again), version, seconds):
            if one.read_bytes() != (dist / one.name).read_bytes():
                raise SystemExit(f'{one.name} differs, built a second time.')
    run(sys.executable, '-m', 'twine', 'check', '--strict', *made)
    return made[1]


def describe(wheel, extra, dist):
    """Write the SBOM of the wheel with an extra; return its distributions.

    :returns: lines of pip freeze
    """
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, '-m', 'venv', folder)
        python = pathlib.Path(folder, 'bin', 'python')
        wanted = f'{wheel}[{extra}]' if extra else str(wheel)
        constraints = ROOT / 'constraints.txt'
        # Not the installed pip, which is none of its requirements.
        pip = (sys.executable, '-m', 'pip', '--python', python)
        run(*pip, 'install', '--quiet', '-c', constraints, wanted)
        run(*pip, 'uninstall', '--quiet', '--yes', 'pip', 'setuptools')
        name = f'sbom-{extra}.cdx.json' if extra else 'sbom.cdx.json'
        run(
            *('cyclonedx-py', 'environment', '--output-reproducible'),
            *('--output-file', dist / name, python),
        )
        frozen = run(*pip, 'freeze')
    return [line for line in frozen.splitlines() if ' @ ' not in line]


def audit(requirements, dist):
    """Write what is known to be vulnerable; return a sentence on it.

    :param requirements: lines of pip freeze
    """
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'requirements.txt')
        path.write_text('\n'.join(sorted(requirements)) + '\n')
        done = subprocess.run(
            [
                *('pip-audit', '--requirement', path, '--no-deps'),
                *('--disable-pip', '--format', 'json'),
            ],
            capture_output=True,
            text=True,
        )
    try:
        found = json.loads(done.stdout)['dependencies']
    except ValueError:
        return f'Not audited: {done.stderr.strip()[-200:]}'
    (dist / 'audit.json').write_text(json.dumps(found, indent=1) + '\n')
    known = [one for one in found if 'vulns' in one]
    bad = [f'{one["name"]} {one["version"]}' for one in known if one['vulns']]
    if not known:
        return f'Not audited: the index knows none of {len(found)} releases.'
    return (
        f'Audited {len(known)} of {len(found)} releases; vulnerable: '
        f'{", ".join(bad) or "none known"}.'
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rehearse', action='store_true')
    rehearse = parser.parse_args().rehearse
    config = read_config()
    missing = find_missing(
        config,
        run('git', 'tag', '--points-at', 'HEAD').split(),
        not run('git', 'status', '--porcelain').strip(),
    )
    if missing and not rehearse:
        return '\n'.join(missing)
    dist = ROOT / 'dist'
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    seconds = int(run('git', 'log', '-1', '--format=%ct'))
    wheel = build_twice(dist, config['metadata']['version'], seconds)
    (dist / 'release-notes.rst').write_text(
        run('reno', '--quiet', 'report', '--no-show-source')
    )
    requirements = set()
    for extra in EXTRAS:
        print('SBOM of', f'the extra {extra}' if extra else 'the wheel')
        requirements.update(describe(wheel, extra, dist))
    print(audit(requirements, dist))
    files = sorted(dist.iterdir())
    (dist / 'SHA256SUMS').write_text(
        ''.join(
            f'{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n'
            for one in files
        )
    )
    print((dist / 'SHA256SUMS').read_text())
    return '\n'.join(missing)


if __name__ == '__main__':
    sys.exit(main())
