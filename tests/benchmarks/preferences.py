# SPDX-License-Identifier: Apache-2.0

"""Show what the weighers of preferences change, in 2,000 boots.

``python -m tests.benchmarks.preferences`` writes
``doc/source/_static/preferences.csv`` and draws it. nova's own weighers order
nova's HostStates, which take each server as nova-scheduler takes it; a host
without room is left out, as placement would. The same servers come with and
without ours.
"""

import csv
import pathlib
import random
import typing

from nova import objects
import nova.conf
from nova.scheduler import host_manager
from nova.scheduler import weights
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils

from nova_ext_sched import conf
from nova_ext_sched.weighers import licences
from nova_ext_sched.weighers import relative_room
from nova_ext_sched.weighers import special_hosts
from tests.benchmarks import plot
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base

CONF = nova.conf.CONF

TABLE = plot.STATIC / 'preferences.csv'
PICTURE = plot.STATIC / 'preferences.svg'
BOOTS = 2000
STEP = 100

WIDTH, HEIGHT, GAP = 360, 150, 84
LEFT, TOP = 56, 96
SERIES = {
    "nova's weighers": ('#d55e00', '#f0873a'),
    'with the weigher': ('#0072b2', '#2f9be0'),
}
#: Title, what is counted, and the largest value.
CHARTS = {
    'room': ('RelativeRoomWeigher: fullest less emptiest host, %', 100),
    'licences': ('LicencesWeigher: hosts with a Windows server', 100),
    'special': ('SpecialHostsWeigher: GPU hosts without a server', 8),
}


class Host(typing.NamedTuple):
    """What a host is made of."""

    vcpus: int
    gib: int
    marked: bool = False


def make_states(hosts):
    """Return nova HostStates without servers."""
    gpu = filters_base.aggregate('gpu', special='VGPU')
    states = []
    for number, host in enumerate(hosts):
        state = filters_base.host_state(f'host{number}')
        state.aggregates = [gpu] if host.marked else []
        state.vcpus_total, state.vcpus_used = host.vcpus, 0
        state.total_usable_ram_mb = state.free_ram_mb = host.gib * 1024
        state.total_usable_disk_gb, state.disk_mb_used = 10**6, 0
        state.free_disk_mb = 10**9
        state.cpu_allocation_ratio = 4.0
        state.ram_allocation_ratio = state.disk_allocation_ratio = 1.0
        state.instances = {}
        states.append(state)
    return states


def boot(states, weighers, spec):
    """Let nova order the hosts with room, and put the server on the best."""
    fitting = [
        state
        for state in states
        if state.free_ram_mb >= spec.flavor.memory_mb
        and state.vcpus_total * 4 - state.vcpus_used >= spec.flavor.vcpus
    ]
    handler = weights.HostWeightHandler()
    best = handler.get_weighed_objects(weighers, fitting, spec)[0].obj
    # nova's; the lock and the time of the update are its caller's.
    host_manager.HostState._locked_consume_from_request(best, spec)
    stub = objects.Instance(uuid=spec.instance_uuid)
    best.instances[spec.instance_uuid] = stub
    return best


def make_specs(licensed=False):
    """Yield the requests, the same ones each time."""
    chance = random.Random(1)
    for _ in range(BOOTS):
        flavor = base.flavor(extra_specs={})
        flavor.vcpus = chance.choice((1, 2, 2, 4))
        flavor.memory_mb = flavor.vcpus * 4096
        os_type = 'windows' if licensed and chance.random() < 0.1 else 'linux'
        yield base.request_spec(
            flavor=flavor,
            image=base.image(os_type=os_type),
            instance_uuid=uuidutils.generate_uuid(),
            num_instances=1,
            pci_requests=None,
            numa_topology=None,
            instance_group=None,
            ignore_hosts=None,
        )


def share(state):
    """Return how much of the host's RAM is used, in percent."""
    return 100 - 100 * state.free_ram_mb / state.total_usable_ram_mb


def run(name, hosts, weigher, count, licensed=False):
    """Yield the rows of a chart, by nova's weighers alone, then with ours."""
    for series, ours in zip(SERIES, ([], [weigher]), strict=True):
        handler = weights.HostWeightHandler()
        weighers = [
            cls()
            for cls in (
                *handler.get_matching_classes(
                    ['nova.scheduler.weights.all_weighers']
                ),
                *ours,
            )
        ]
        states, placed = make_states(hosts), []
        for number, spec in enumerate(make_specs(licensed), 1):
            placed.append((boot(states, weighers, spec), spec))
            if not number % STEP:
                value = round(count(states, placed), 1)
                yield name, series, number, value


def measure():
    """Yield all rows of the table."""
    small, large = Host(64, 512), Host(128, 2048)
    yield from run(
        'room',
        [small, large] * 10,
        relative_room.RelativeRoomWeigher,
        lambda states, _: max(map(share, states)) - min(map(share, states)),
    )
    yield from run(
        'licences',
        [small] * 100,
        licences.LicencesWeigher,
        lambda _, placed: len(
            {
                state.host
                for state, spec in placed
                if spec.image.properties.os_type == 'windows'
            }
        ),
        licensed=True,
    )
    yield from run(
        'special',
        [Host(32, 200, marked=number % 12 == 0) for number in range(96)],
        special_hosts.SpecialHostsWeigher,
        lambda states, _: sum(
            not state.instances for state in states if state.aggregates
        ),
    )


def draw(rows):
    """Return the picture, as SVG: a panel for each chart."""
    width, height = LEFT + WIDTH + 24, TOP + len(CHARTS) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} '
        f'{height}" font-family="sans-serif" font-size="12">',
        '<title>What the weighers change, by the number of boots</title>',
        _style(),
    ]
    for line, series in enumerate(SERIES):
        y = 20 + 18 * line
        parts += [
            f'<polyline class="line{line}" points="{LEFT},{y - 4} '
            f'{LEFT + 24},{y - 4}"/>',
            f'<text x="{LEFT + 30}" y="{y}">{series}</text>',
        ]
    for number, (name, (title, most)) in enumerate(CHARTS.items()):
        top = TOP + number * (HEIGHT + GAP)
        parts.append(
            f'<text x="{LEFT}" y="{top - 12}" font-weight="bold">{title}'
            f'</text>'
        )
        for part in (0, 0.5, 1):
            y = top + HEIGHT * (1 - part)
            parts += [
                f'<line class="grid" x1="{LEFT}" y1="{y}" '
                f'x2="{LEFT + WIDTH}" y2="{y}"/>',
                f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">'
                f'{most * part:g}</text>',
            ]
        parts += [
            f'<text x="{LEFT + WIDTH * boots / BOOTS:g}" '
            f'y="{top + HEIGHT + 18}" text-anchor="middle">{boots:,}</text>'
            for boots in (0, BOOTS // 2, BOOTS)
        ]
        parts.append(
            f'<text x="{LEFT + WIDTH / 2:g}" y="{top + HEIGHT + 34}" '
            f'text-anchor="middle">boots</text>'
        )
        for line, series in enumerate(SERIES):
            points = ' '.join(
                f'{LEFT + WIDTH * int(boots) / BOOTS:.1f},'
                f'{top + HEIGHT * (1 - float(value) / most):.1f}'
                for chart, of, boots, value in rows
                if (chart, of) == (name, series)
            )
            parts.append(f'<polyline class="line{line}" points="{points}"/>')
    return '\n'.join([*parts, '</svg>', ''])


def _style():
    def rules(dark):
        lines = ' '.join(
            f'.line{number} {{ stroke: {colours[dark]} }}'
            for number, colours in enumerate(SERIES.values())
        )
        return (
            f'text {{ fill: {plot.TEXT[dark]} }} '
            f'.grid {{ stroke: {plot.GRID[dark]} }} {lines}'
        )

    return (
        f'<style>polyline {{ fill: none; stroke-width: 2 }} {rules(0)} '
        f'@media (prefers-color-scheme: dark) {{ {rules(1)} }}</style>'
    )


def read():
    """Return the rows of the table."""
    with TABLE.open(newline='') as file:
        _, *rows = csv.reader(file)
        return rows


def main(table: pathlib.Path = TABLE) -> None:
    """Measure, and write the table and the picture."""
    conf.register_opts(CONF)
    config = config_fixture.Config(CONF)
    with config:
        config.config(licence_os_types=['windows'], group='nova_ext_sched')
        rows = list(measure())
    with table.open('w', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(('chart', 'series', 'boots', 'value'))
        writer.writerows(rows)
    PICTURE.write_text(draw(read()))


if __name__ == '__main__':
    main()
