# SPDX-License-Identifier: Apache-2.0

"""Every policy through nova-api: where each server stands, after each step.

Where it may stand says ``oracle``, which knows nothing of the package. Before
a server is created, ``nova-ext-sched explain`` is asked for the same request;
after all, ``nova-ext-sched audit`` must find what was misplaced on purpose,
and nothing else.
"""

import collections

import ddt
from openstack import exceptions
import testtools

from tests.cloud import nova
from tests.cloud import oracle
from tests.cloud import world

#: Flavor, image and user of the servers that live through every operation.
LIVES = (
    ('plain', 'linux', 'member'),
    ('windows', 'linux', 'member'),
    ('plain', 'windows-image', 'other'),
    ('lease', 'linux', 'member'),
    ('lease', 'linux', 'other'),
    ('ssd', 'linux', 'member'),
    ('no-ssd', 'linux', 'other'),
)
#: Options of explain, by what nova-api calls them.
EXPLAINED = {
    'host': '--destination',
    'availability_zone': '--availability-zone',
}
#: Glance's rules by which administrators alone write traits.
PROTECTED = {
    '^trait:.*': {
        'create': 'admin',
        'read': '@',
        'update': 'admin',
        'delete': 'admin',
    }
}


@ddt.ddt
class PoliciesTestCase(world.WorldTestCase):
    def tearDown(self):
        try:
            self.assertEqual([], self.audited(0))
        finally:
            world.delete_servers(self.world.admin)
            super().tearDown()

    # What is checked after each step.

    def check(self, what, server, allowed):
        """Check that a server stands where the oracle lets it, or nowhere."""
        if server.hypervisor_hostname is not None:
            self.assertIn(server.hypervisor_hostname, allowed, what)

    def explained(self, flavor, image, user, *arguments):
        """Return the hosts that explain names for a request."""
        done = self.cloud.nova.command(
            'explain',
            '--flavor',
            flavor,
            *(['--image', self.world.image(image)] if image else []),
            '--project',
            self.world.projects[user],
            *arguments,
            '-f',
            'json',
            user='admin',
            status=None,
        )
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return nova.explained_hosts(done)

    def boot(self, flavor, image='linux', user='member', volume=None, **body):
        """Create servers as ``World.boot`` does; explain must have said so.

        :param volume: the image of a volume to boot from
        """
        arguments = []
        if volume:
            arguments.append('--boot-from-volume')
        hints = body.get('hints', {})
        for key, value in hints.items():
            option = '--server-group' if key == 'group' else '--hint'
            arguments += [
                option,
                value if key == 'group' else f'{key}={value}',
            ]
        for key, option in EXPLAINED.items():
            if key in body:
                arguments += [option, str(body[key])]
        explained = self.explained(flavor, volume or image, user, *arguments)
        if volume:
            body |= self.world.volume(volume)
        servers = self.world.boot(flavor, image, user, **body)
        what = (flavor, image, user, body, explained)
        for server in servers:
            if server.status == 'ACTIVE':
                self.assertIn(server.hypervisor_hostname, explained, what)
            else:
                self.assertEqual(set(), explained, (what, server.fault))
        return servers

    # Operations.

    @ddt.idata(LIVES)
    @ddt.unpack
    def test_life(self, flavor, image, user):
        """Lead a server through everything that asks the scheduler."""
        of = self.world
        allowed = of.allowed(flavor, image, user)
        name = f'{flavor}, {image}, {user}'
        self.assertEqual(
            allowed, self.explained(flavor, image, user), f'{name}: explain'
        )
        (server,) = self.boot(flavor, image, user)
        if not allowed:
            self.assertEqual('ERROR', server.status, name)
            self.assertIn('No valid host', server.fault['message'])
            of.delete(server.id)
            return
        self.assertEqual('ACTIVE', server.status, f'{name}: {server.fault}')
        self.check(f'{name}: boot', server, allowed)
        for step in (
            self.cold_migrate,
            self.resize_and_revert,
            self.live_migrate,
            self.shelve,
            self.rebuild,
        ):
            step(name, server.id, flavor, allowed)

    def targets(self, server, allowed):
        """Return where a server may move: within its cell, not in place."""
        host = server.hypervisor_hostname
        cell = self.world.cell_of[host]
        return {
            other
            for other in allowed - {host}
            if self.world.cell_of[other] == cell
        }

    def moved(self, what, server, body, allowed, arrived):
        """Ask for a move; check that it is refused only without a target.

        :param arrived: the status of a server that has moved
        """
        before = self.world.show(server)
        targets = self.targets(before, allowed)
        answer = self.world.act(server, body)
        self.assertIn(answer.status_code, (200, 202), answer.text)
        after = self.world.wait(
            server,
            lambda found: (
                found.task_state is None
                and (
                    found.status == arrived
                    and found.hypervisor_hostname != before.hypervisor_hostname
                    or self.refused(found, before)
                )
            ),
        )
        host = after.hypervisor_hostname
        if targets:
            self.assertIn(host, targets, what)
        else:
            self.assertEqual(before.hypervisor_hostname, host, what)
        self.check(what, after, allowed)
        return after, bool(targets)

    def refused(self, found, before):
        """Tell whether the last action of a server ended in an error."""
        actions = self.world.admin.compute.get(
            f'/servers/{found.id}/os-instance-actions'
        ).json()['instanceActions']
        last = self.world.admin.compute.get(
            f'/servers/{found.id}/os-instance-actions/'
            f'{actions[0]["request_id"]}'
        ).json()['instanceAction']
        return any(event['result'] == 'Error' for event in last['events'])

    def cold_migrate(self, name, server, flavor, allowed):
        after, moved = self.moved(
            f'{name}: migrate',
            server,
            {'migrate': None},
            allowed,
            'VERIFY_RESIZE',
        )
        if moved:
            self.world.act(server, {'confirmResize': None})
            self.active(server)

    def resize_and_revert(self, name, server, flavor, allowed):
        body = {'resize': {'flavorRef': self.world.flavor(f'{flavor}-large')}}
        host = self.world.show(server).hypervisor_hostname
        after, moved = self.moved(
            f'{name}: resize', server, body, allowed, 'VERIFY_RESIZE'
        )
        if moved:
            self.world.act(server, {'revertResize': None})
            self.active(server)
            self.assertEqual(
                host, self.world.show(server).hypervisor_hostname, name
            )

    def live_migrate(self, name, server, flavor, allowed):
        what = f'{name}: live migrate'
        self.moved(what, server, world.LIVE, allowed, 'ACTIVE')

    def shelve(self, name, server, flavor, allowed):
        self.world.act(server, {'shelve': None})
        self.active(server, 'SHELVED_OFFLOADED')
        self.world.act(server, {'unshelve': None})
        self.check(f'{name}: unshelve', self.active(server), allowed)

    def rebuild(self, name, server, flavor, allowed):
        """Rebuild with the server's own image: always allowed."""
        image = self.world.show(server).image.id
        self.world.act(server, {'rebuild': {'imageRef': image}})
        self.check(f'{name}: rebuild', self.active(server), allowed)

    def active(self, server, status='ACTIVE'):
        """Wait until a server has a status; return it."""
        return self.world.wait(
            server,
            lambda found: found.task_state is None and found.status == status,
        )

    # Policies.

    @ddt.data('host', 'availability_zone')
    def test_named_host(self, key):
        """A host that an administrator requests or forces is judged too.

        nova runs no host filter on a forced host: only the request filters
        judge it.
        """
        for flavor in ('plain', 'windows'):
            allowed = self.world.allowed(flavor, 'linux', 'admin')
            for host in self.world.hosts:
                (server,) = self.boot(
                    flavor,
                    'linux',
                    'admin',
                    **{key: host if key == 'host' else f'nova:{host}'},
                )
                self.assertEqual(
                    'ACTIVE' if host in allowed else 'ERROR',
                    server.status,
                    (flavor, host, server.fault),
                )
                self.check(f'{flavor}: {key} {host}', server, allowed)
                self.world.delete(server.id)

    def test_failure_domains(self):
        """One server of a group a rack, where the server asks for it."""
        group = self.world.create_group(policy='soft-affinity')
        hints = {'group': group, 'different_failure_domain': 'true'}
        servers = [
            server
            for _ in range(4)
            for server in self.boot('plain', 'linux', hints=hints)
        ]
        statuses = collections.Counter(server.status for server in servers)
        # Plain servers may stand on compute3, 5 and 6: racks 3, 2 and 3.
        self.assertEqual({'ACTIVE': 2, 'ERROR': 2}, dict(statuses))
        counts = collections.Counter(
            self.world.racks[server.hypervisor_hostname]
            for server in servers
            if server.status == 'ACTIVE'
        )
        self.assertTrue(oracle.group_fits(counts, 1), counts)

    @ddt.data('different_failure_domain', 'max_server_per_failure_domain')
    def test_emoji_in_a_hint(self, hint):
        """The server's fault can be stored, so that it ends in ERROR.

        nova's tables have no character above U+FFFF. Where conductor cannot
        store the fault, the server stays in BUILD.
        """
        group = self.world.create_group(policy='soft-affinity')
        (server,) = self.boot(
            'plain', hints={'group': group, hint: '\U0001f600'}
        )
        self.assertEqual('ERROR', server.status)
        self.assertIn(
            f'scheduler hint {hint}: expected one value',
            server.fault['message'],
        )
        self.assertIn("got '\\U0001f600'", server.fault['message'])

    def test_volumes(self):
        """The image of a server's volume counts as its image does."""
        for image in ('linux', 'windows-image'):
            allowed = self.world.allowed('plain', image)
            (server,) = self.boot('plain', None, volume=image)
            self.assertEqual('ACTIVE', server.status, server.fault)
            self.check(f'volume of {image}', server, allowed)
            self.live_migrate(f'volume of {image}', server.id, None, allowed)
            self.world.delete(server.id)

    @ddt.data(('linux', 'windows-image'), ('windows-image', 'linux'))
    @ddt.unpack
    def test_image_beside_a_volume(self, image, volume):
        """nova goes by the image that is named, and then by the volume.

        The page on isolation says so.
        """
        named = self.world.allowed('plain', image)
        held = self.world.allowed('plain', volume)
        for host in sorted(named):
            if self.world.cell_of[host] == 'cell1':
                break
        (server,) = self.world.boot(
            'plain', image, 'admin', host=host, **self.world.volume(volume)
        )
        self.assertEqual(host, server.hypervisor_hostname, server.fault)
        self.assertEqual([], self.audited(0))
        self.world.act(server.id, world.LIVE)
        after = self.world.wait(
            server.id,
            lambda found: (
                found.task_state is None and found.hypervisor_hostname != host
            ),
        )
        self.assertIn(after.hypervisor_hostname, held)
        self.world.delete(server.id)

    def test_members_who_try(self):
        """What a member may not do is refused by nova or by the policies."""
        member = self.world.users['other'].compute
        headers = {'X-OpenStack-Nova-API-Version': '2.90'}
        wanted = {
            'name': 'thief',
            'flavorRef': self.world.flavor('plain'),
            'imageRef': self.world.image('linux'),
            'networks': [{'uuid': self.world.network}],
        }
        for extra in (
            {'availability_zone': 'nova:compute1'},
            {'host': 'compute1'},
        ):
            answer = member.post(
                '/servers',
                json={'server': {**wanted, **extra}},
                headers=headers,
            )
            self.assertEqual(403, answer.status_code, answer.text)
        # A hint names a lease only where member_sources says so.
        allowed = self.world.allowed('plain', 'linux', 'other')
        for hints in (
            {'reservation': 'lease'},
            {'reservation:lease': 'true'},
        ):
            (server,) = self.boot('plain', 'linux', 'other', hints=hints)
            self.check(f'hint {hints}', server, allowed)
            self.world.delete(server.id)
        # Another project's lease.
        (server,) = self.boot('plain', 'linux', 'other')
        answer = self.world.act(
            server.id,
            {'resize': {'flavorRef': self.world.flavor('lease')}},
            'other',
        )
        self.assertIn(answer.status_code, (202, 400), answer.text)
        after = self.world.wait(server.id)
        self.check('resize to another lease', after, allowed)
        self.world.delete(server.id)

    def test_rebuilds(self):
        """A licensed server on an isolated host stays licensed."""
        (server,) = self.boot('plain', 'windows-image', 'other')
        before = server.image.id
        answer = self.world.act(
            server.id,
            {'rebuild': {'imageRef': self.world.image('linux')}},
            'other',
        )
        self.assertEqual(202, answer.status_code, answer.text)
        after = self.world.wait(server.id)
        self.assertEqual('ERROR', after.status)
        self.assertEqual(before, after.image.id)
        self.assertIn('No valid host', after.fault['message'])
        self.world.delete(server.id)

    def test_property_protection(self):
        """Glance counts the roles of nova's user as the member's own."""
        with self.cloud.glance.protecting(PROTECTED):
            with testtools.ExpectedException(exceptions.ForbiddenException):
                self.world.users['member'].create_image(
                    'mine', data=b'nothing', meta=world.WINDOWS
                )
            (plain,) = self.boot('plain', 'linux')
            (licensed,) = self.boot('plain', 'windows-image')
            # nova's user has the role admin.
            image = self.snapshot(plain, world.WINDOWS)
            self.assertEqual('required', image[f'trait:{world.TRAIT}'])
            self.assertIn('trait:' + world.TRAIT, self.snapshot(licensed))
            self.lands_on_a_licensed_host(image)
            # It has not.
            with self.cloud.nova.api_options(
                self.service_user_without_admin()
            ):
                self.snapshot(plain)
                self.snapshot(plain, world.WINDOWS, status=403)
                self.snapshot(licensed, status=403)
                answer = self.act(licensed, {'shelve': None})
                self.assertEqual(403, answer.status_code, answer.text)

    def act(self, server, body, user='member'):
        return self.world.act(server.id, body, user)

    def snapshot(self, server, properties=None, status=202):
        """Make a snapshot as the member; return it where it was allowed."""
        answer = self.act(
            server,
            {'createImage': {'name': 'mine', 'metadata': properties or {}}},
        )
        self.assertEqual(status, answer.status_code, answer.text)
        if status != 202:
            return None
        self.active(server.id)
        image = answer.json()['image_id']
        self.addCleanup(self.world.admin.image.delete_image, image)
        return self.show_image(image)

    def show_image(self, image):
        return self.world.admin.image.get(f'/images/{image}').json()

    def lands_on_a_licensed_host(self, image):
        """Boot a server from a snapshot.

        The member fills it: the fake driver uploads nothing.
        """
        self.world.image_ids['mine'] = image['id']
        images = self.world.users['member'].image
        images.update_image(
            image['id'], disk_format='raw', container_format='bare'
        )
        answer = images.put(
            f'/images/{image["id"]}/file',
            data=b'nothing',
            headers={'Content-Type': 'application/octet-stream'},
        )
        self.assertEqual(204, answer.status_code, answer.text)
        (server,) = self.boot('plain', 'mine')
        self.assertIn(
            server.hypervisor_hostname,
            self.world.aggregates['windows'].hosts,
            server.fault,
        )

    def service_user_without_admin(self):
        """Return options by which nova has another user for its tokens."""
        keystone = self.cloud.keystone
        user = keystone.create_service_user('nova-service', ('service',))
        self.addCleanup(self.world.admin.identity.delete_user, user)
        return {'service_user': keystone.credentials('nova-service')}

    def test_audit_finds_what_is_misplaced(self):
        for body in ({'host': 'compute1'}, {'host': 'compute2'}):
            self.boot('windows', 'linux', 'admin', **body)
        (wrong,) = self.boot('plain', 'linux', 'admin', host='compute3')
        self.boot('plain', 'linux', 'admin', host='compute5')
        self.assertEqual([], self.audited(0))
        # The licence is extended to a host that is not empty.
        compute = self.world.admin.compute
        windows = compute.find_aggregate('windows')
        compute.add_host_to_aggregate(windows, 'compute3')
        try:
            self.assertEqual([wrong.id], self.audited(3))
        finally:
            compute.remove_host_from_aggregate(windows, 'compute3')

    def audited(self, status):
        """Return the servers that audit names."""
        done = self.cloud.nova.command(
            'audit',
            '-f',
            'value',
            '-c',
            'Server',
            user='admin',
            status=status,
        )
        return done.stdout.split()

    def test_evacuate(self):
        """A compute that is gone; its servers go where they may stand."""
        host = 'compute7'
        process = self.cloud.nova.add_compute('cell2', host)
        servers = {
            flavor: self.boot(flavor, 'linux', 'admin', host=host)[0]
            for flavor in ('plain', 'no-ssd')
        }
        self.cloud.processes.stop(process)
        self.wait_for_down(host)
        for flavor, server in servers.items():
            self.assertEqual(host, server.hypervisor_hostname, server.fault)
            allowed = self.world.allowed(flavor, 'linux')
            answer = self.world.act(server.id, {'evacuate': {}})
            self.assertEqual(200, answer.status_code, answer.text)
            after = self.world.wait(
                server.id,
                lambda found: found.hypervisor_hostname != host,
            )
            self.check(f'{flavor}: evacuate', after, allowed)

    def wait_for_down(self, host):
        def is_down():
            services = self.world.admin.compute.services(host=host)
            return all(found.state == 'down' for found in services)

        self.cloud.processes.wait(is_down, f'{host} down')
