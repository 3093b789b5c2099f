# SPDX-License-Identifier: Apache-2.0

"""APIs of services under uwsgi."""

import urllib.error
import urllib.request

from tests.cloud import processes


def has_module(service, module):
    """Tell whether a module is installed in a service's environment."""
    path = module.replace('.', '/')
    return any(service.prefix.glob(f'lib/python3*/site-packages/{path}.py'))


def start(service, module, script, *options, **variables):
    """Start an API under uwsgi; return its process and the port.

    The port is the service's, a free one for the first start.

    :param service: the ``Service`` whose environment has the API and uwsgi
    :param module: has the WSGI application
    :param script: has it in releases before 2025.1, which lack the module
    :param options: further ones of uwsgi
    :param variables: of the environment
    """
    name = f'{service.name}-api'
    port = service.port or processes.free_port()
    application = (
        ('--module', f'{module}:application')
        if has_module(service, module)
        else ('--wsgi-file', service.program(script))
    )
    process = service.cloud.processes.start(
        name,
        [
            service.program('uwsgi'),
            '--http-socket',
            f'127.0.0.1:{port}',
            *application,
            '--master',
            '--die-on-term',
            '--lazy-apps',
            '--enable-threads',
            '--need-app',
            '--processes',
            '2',
            '--buffer-size',
            '65535',
            # uwsgi's own HTTP reads one request of a connection.
            '--add-header',
            'Connection: close',
            *options,
        ],
        port=port,
        **variables,
    )
    service.cloud.processes.wait(lambda: answers(port), name)
    return process, port


def answers(port):
    """Tell whether an HTTP server answers, with any status below 500."""
    try:
        url = f'http://127.0.0.1:{port}/'
        with urllib.request.urlopen(url, timeout=30):
            return True
    except urllib.error.HTTPError as exc:
        return exc.code < 500
    except OSError:
        return False
