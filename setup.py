import pathlib
import sys

import setuptools

# setup.cfg names a hook there.
sys.path.insert(0, str(pathlib.Path(__file__).parent / 'tools'))

setuptools.setup(setup_requires=['pbr>=5.10'], pbr=True)
