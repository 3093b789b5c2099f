# SPDX-License-Identifier: Apache-2.0

"""Blazar: leases of hosts."""

import datetime
import functools
import json
import re
import typing

from tests.cloud import cloud
from tests.cloud import configuration
from tests.cloud import nova
from tests.cloud import service
from tests.cloud import web

#: Blazar manages hosts in it that nobody has reserved.
FREE_POOL = 'freepool'
#: All hosts that it manages: closes the gap between its calls of nova.
MANAGED = 'managed'
#: Everything of ours on, Blazar's policy too.
EVERYTHING = configuration.merge(
    nova.EVERYTHING,
    {
        'filter_scheduler': {
            'enabled_filters': (
                nova.EVERYTHING['filter_scheduler']['enabled_filters']
                + ',AggregateMultiTenancyIsolation,BlazarFilter'
            )
        },
        'nova_ext_sched': {
            'request_filters': (
                nova.EVERYTHING['nova_ext_sched']['request_filters']
                + ',blazar_reservations'
            )
        },
        'blazar:physical:host': {'preemptible_aggregate': MANAGED},
    },
)

# Two lines of nova-api's log with debug=True: what somebody asks of an
# aggregate, and that it was answered. One ID of a request is in both.
_ASKED = re.compile(
    r'^(\S+ \S+) .*\[\S+ (req-\S+) .*'
    r'body: \{"(add|remove)_host": \{"host": "([^"]+)"'
)
_ANSWERED = re.compile(
    r'^(\S+ \S+) .*\[\S+ (req-\S+) .*'
    r'"POST \S+/os-aggregates/(\d+)/action" status: 200'
)


class Stay(typing.NamedTuple):
    """For how long a host was in an aggregate, in seconds of the epoch.

    It begins when nova-api has answered the call that adds the host, and ends
    when nova-api reads the call that removes it.
    """

    host: str
    aggregate: int
    since: float
    until: float = float('inf')


def stays(log):
    """Return the stays that a log of nova-api with debug=True tells of."""
    asked, found = {}, []
    for line in log.splitlines():
        if match := _ASKED.match(line):
            time, request, action, host = match.groups()
            asked[request] = (_seconds(time), action, host)
        elif (match := _ANSWERED.match(line)) and match[2] in asked:
            time, request, aggregate = match.groups()
            began, action, host = asked.pop(request)
            if action == 'add':
                found.append(Stay(host, int(aggregate), _seconds(time)))
                continue
            found = [
                stay._replace(until=min(began, stay.until))
                if stay[:2] == (host, int(aggregate))
                else stay
                for stay in found
            ]
    return found


def _seconds(time):
    return datetime.datetime.fromisoformat(time).timestamp()


class Blazar(service.Service):
    """The reservation service: API and manager, after nova in the form.

    Every ten seconds the manager looks for leases that begin or end.
    """

    name = 'blazar'
    packages = ('blazar', 'python-blazarclient', 'python-openstackclient')

    def start(self):
        keystone = self.cloud.keystone
        keystone.create_service_user('blazar')
        self.conf = self.write(
            'blazar.conf',
            {
                'DEFAULT': {
                    'transport_url': self.cloud.rabbitmq.url(),
                    'host': '127.0.0.1',
                    'debug': 'True',
                    # To give it a host is a dozen calls of other services.
                    'rpc_response_timeout': '300',
                    # keystone's address, in the parts that make it up.
                    'os_auth_host': '127.0.0.1',
                    'os_auth_port': keystone.port,
                    'os_auth_prefix': 'v3',
                    'os_auth_version': '',
                    'os_admin_username': 'blazar',
                    'os_admin_password': self.cloud.password,
                    'os_admin_project_name': 'service',
                    'os_region_name': cloud.REGION,
                },
                'manager': {
                    'plugins': (
                        'physical.host.plugin,virtual.instance.plugin,'
                        'flavor.instance.plugin'
                    ),
                    'minutes_before_end_lease': '0',
                },
                'database': {
                    'connection': self.cloud.mariadb.create('blazar')
                },
            },
            keystone.middleware('blazar'),
        )
        self.manage('blazar-db-manage', self.conf, 'upgrade', 'head')
        self.process, self.port = web.start(
            self,
            'blazar.wsgi.api',
            'blazar-api-wsgi',
            OS_BLAZAR_CONFIG_DIR=self.folder,
        )
        self.url = f'http://127.0.0.1:{self.port}/v1'
        keystone.register('blazar', 'reservation', self.url)
        self.manager = self.run_service('blazar-manager', self.conf)

    def command(self, *arguments, user=cloud.ADMINISTRATOR):
        """Run a command of python-blazarclient; return what it printed."""
        return self.cloud.execute(
            [self.program('openstack'), 'reservation', *arguments], user=user
        ).stdout

    def ask(self, *arguments, **keywords):
        """Run a command that shows something; return what."""
        text = self.command(*arguments, '-f', 'json', **keywords)
        # A command that creates something says so first.
        return json.loads(text[re.search(r'^[\[{]', text, re.M).start() :])

    def take(self, *hosts):
        """Create Blazar's aggregates, and give it hosts without servers."""
        compute = self.cloud.connect().compute
        compute.create_aggregate(name=FREE_POOL)
        managed = compute.create_aggregate(name=MANAGED)
        for host in hosts:
            compute.add_host_to_aggregate(managed, host)
            self.ask('host', 'create', host)

    def create_lease(self, name, user, reservation, minutes=60):
        """Create a lease that begins at once.

        :param reservation: what python-blazarclient takes: KEY=VALUE,...
        :returns: the IDs of the lease and of its reservation
        """
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(
            minutes=minutes
        )
        lease = self.ask(
            'lease',
            'create',
            '--reservation',
            reservation,
            '--end-date',
            end.strftime('%Y-%m-%d %H:%M'),
            name,
            user=user,
        )
        reservation = lease['reservations']
        if isinstance(reservation, str):
            reservation = json.loads(reservation)
        return lease['id'], reservation['id']

    def lease_status(self, lease):
        """Return the status of a lease; it is asked for often."""
        answer = self._session.get(f'{self.url}/leases/{lease}')
        return answer.json()['lease']['status']

    @functools.cached_property
    def _session(self):
        return self.cloud.connect().session

    def end_lease(self, lease):
        """Delete a lease; its servers are gone when it returns."""
        self.command('lease', 'delete', lease)

    def leave_nothing(self):
        """Delete all leases, and take Blazar's hosts away from it.

        Blazar does so by a trust of who asked for them. Users of a test are
        gone after it, and their trusts too: the administrator takes over.
        """
        admin = self.cloud.connect()
        trust = admin.identity.create_trust(
            trustor_user_id=admin.current_user_id,
            trustee_user_id=admin.identity.find_user('blazar').id,
            project_id=admin.current_project_id,
            is_impersonation=True,
            roles=[{'name': 'admin'}],
        )
        self.cloud.mariadb.execute(
            f"UPDATE blazar.leases SET trust_id = '{trust.id}'",
            f"UPDATE blazar.computehosts SET trust_id = '{trust.id}'",
        )
        for path, key in (('leases', 'leases'), ('os-hosts', 'hosts')):
            found = self._session.get(f'{self.url}/{path}').json()[key]
            for one in found:
                self._session.delete(f'{self.url}/{path}/{one["id"]}')
        # nova-compute remembers the provider that Blazar gave a host for
        # instance reservations, and claims no server there when it is gone.
        for host in self.cloud.nova.hosts:
            self.cloud.processes.stop_named(f'nova-compute-{host}')
            self.cloud.processes.start_again(f'nova-compute-{host}')
