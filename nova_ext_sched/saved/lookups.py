# SPDX-License-Identifier: Apache-2.0

"""Images, volumes, ports and names of projects, into a file and out of it.

nova asks Glance, Cinder and Neutron about some servers. What they answered
is in the file. What they were not asked then is an error later, never an
answer about nothing.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import datetime
import typing

from nova import exception as nova_exception
from nova.accelerator import cyborg
from nova.image import glance
from nova.network import neutron
from nova.volume import cinder

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import projects
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.saved import container
from nova_ext_sched.saved import listed
from nova_ext_sched.saved import rows

_Thing = dict[str, typing.Any]

_TIMES = ('created_at', 'updated_at')


class NotSaved(exception.NovaExtSchedError):
    """A question needs data that a saved cloud does not have."""

    message = 'the file of the saved cloud has no {what}{how}'


def ask(
    write: Callable[[container.Record], None],
    written: rows.Rows,
    images: Collection[str],
    advance: Callable[..., None],
) -> Iterator[str]:
    """Write other services' answers; yield the left out parts, and why.

    :param write: takes what is to be a line of the file
    :param written: the rows that the file has; what they name is asked for
    :param images: UUIDs or names of more images
    """
    context = process.context()
    questions: tuple[
        tuple[str, Collection[str], Callable[[str], None]], ...
    ] = (
        (
            'images',
            written.images,
            lambda uuid: _write_image(write, glance.API().get(context, uuid)),
        ),
        (
            'images named by --image',
            images,
            lambda name: _write_image(
                write, request.find_image(context, name)
            ),
        ),
        (
            'volumes that servers boot from',
            written.volumes,
            lambda uuid: write(
                {
                    'volume': listed.prune(
                        listed.VOLUME,
                        dict(cinder.API().get(context.elevated(), uuid)),
                    )
                }
            ),
        ),
        (
            'ports',
            ['all'] if written.has_ports else [],
            lambda _: _write_ports(write, context),
        ),
    )
    for what, wanted, read in questions:
        advance(total=len(wanted), label=f'Reading {what}')
        if why := _read_all(wanted, read, advance):
            yield f'{what} ({why})'
    # All of them: a project without servers can ask for its first one.
    if names := projects.read_all():
        write({'projects': names})


def _read_all(
    wanted: Collection[str],
    read: Callable[[str], None],
    advance: Callable[..., None],
) -> str:
    """Read things of one service; return why it was given up, if it was."""
    for one in sorted(wanted):
        try:
            read(one)
        except exception.UnknownName:
            raise
        except (nova_exception.ImageNotFound, nova_exception.VolumeNotFound):
            continue
        except Exception as exc:
            # Whatever the clients of these services raise.
            return messages.without_secrets(messages.say_error(exc))
        finally:
            advance()
    return ''


def _write_image(
    write: Callable[[container.Record], None], image: Mapping[str, typing.Any]
) -> None:
    kept = listed.prune(listed.IMAGE, dict(image))
    for name in _TIMES:
        if isinstance(kept.get(name), datetime.datetime):
            kept[name] = kept[name].isoformat()
    write({'image': kept})


def _write_ports(
    write: Callable[[container.Record], None], context: typing.Any
) -> None:
    client = neutron.get_client(context, admin=True)
    for port in client.list_ports(fields=[*listed.PORT])['ports']:
        if port.get('device_id'):
            write({'port': listed.prune(listed.PORT, port)})
    extensions = client.list_extensions()['extensions']
    write({'extensions': sorted(one['alias'] for one in extensions)})


@dataclasses.dataclass
class Answers:
    """The answers of other services when the cloud was saved.

    :ivar images: by UUID; so are volumes and ports, and names of projects
    :ivar extensions: of Neutron; None if it did not answer
    """

    images: dict[str, _Thing] = dataclasses.field(default_factory=dict)
    volumes: dict[str, _Thing] = dataclasses.field(default_factory=dict)
    ports: dict[str, _Thing] = dataclasses.field(default_factory=dict)
    extensions: list[str] | None = None
    projects: dict[str, str] = dataclasses.field(default_factory=dict)

    def use(self) -> None:
        """Make nova's code in this process use these answers alone."""
        glance.API = lambda: _Glance(self.images)
        cinder.API = lambda: _Cinder(self.volumes)
        neutron.get_client = lambda *_, **__: _Neutron(self)
        cyborg.get_client = _refuse_cyborg
        projects.list_projects = lambda: [
            {'id': id_, 'name': name} for id_, name in self.projects.items()
        ]


def _refuse_cyborg(_: object) -> typing.NoReturn:
    raise NotSaved(what='answers of Cyborg', how='')


@dataclasses.dataclass
class _Glance:
    images: Mapping[str, _Thing]

    def get(self, _: object, image: str, **__: object) -> _Thing:
        if image not in self.images:
            raise NotSaved(
                what=f'image {messages.clean(image)}',
                how=': save it with --image',
            )
        found = dict(self.images[image])
        for name in _TIMES:
            if isinstance(found.get(name), str):
                found[name] = datetime.datetime.fromisoformat(found[name])
        return found

    def get_all(self, context: object, **_: object) -> list[_Thing]:
        return [self.get(context, image) for image in self.images]


@dataclasses.dataclass
class _Cinder:
    volumes: Mapping[str, _Thing]

    def get(self, _: object, volume: str, **__: object) -> _Thing:
        if volume not in self.volumes:
            raise NotSaved(what=f'volume {messages.clean(volume)}', how='')
        return self.volumes[volume]


@dataclasses.dataclass
class _Neutron:
    answers: Answers

    def list_ports(self, device_id: str, **_: object) -> _Thing:
        self._check()
        return {
            'ports': [
                port
                for port in self.answers.ports.values()
                if port.get('device_id') == device_id
            ]
        }

    def show_port(self, port: str, **_: object) -> _Thing:
        self._check()
        if port not in self.answers.ports:
            raise nova_exception.PortNotFound(port_id=port)
        return {'port': self.answers.ports[port]}

    def list_extensions(self, **_: object) -> _Thing:
        extensions = self._check()
        return {'extensions': [{'alias': alias} for alias in extensions]}

    def _check(self) -> list[str]:
        if self.answers.extensions is None:
            raise NotSaved(what='ports: Neutron did not answer', how='')
        return self.answers.extensions

    def __getattr__(self, name: str) -> typing.NoReturn:
        raise NotSaved(what=f'answers of Neutron to {name}', how='')
