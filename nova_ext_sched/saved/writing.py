# SPDX-License-Identifier: Apache-2.0

"""Saves a cloud: reads all that belongs to it, and writes one file."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
import contextlib
import dataclasses
import importlib.metadata
import pathlib
import typing

from nova import context as nova_context
from nova import objects
import nova.conf
from nova.conf import opts as nova_opts
from nova.db import migration
from nova.db.api import api as api_db
from oslo_config import cfg
from oslo_utils import timeutils

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.saved import anonymous
from nova_ext_sched.saved import container
from nova_ext_sched.saved import listed
from nova_ext_sched.saved import lookups
from nova_ext_sched.saved import migrations
from nova_ext_sched.saved import providers
from nova_ext_sched.saved import rows

CONF = nova.conf.CONF

#: How often is read again what changed meanwhile.
TRIES = 3

# How sections begin that belong to every service.
_OF_SERVICES = ('DEFAULT', 'oslo_', 'keystone_authtoken')


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The part of a cloud to save; by default all.

    :ivar cell: the name or UUID of the only cell
    :ivar aggregates: names, UUIDs or IDs of aggregates: their hosts alone
    :ivar images: names or UUIDs of images besides those of servers
    :ivar placement: path of placement's own configuration
    :ivar anonymous: whether names are replaced
    """

    cell: str | None = None
    aggregates: Collection[str] = ()
    images: Collection[str] = ()
    placement: pathlib.Path | None = None
    anonymous: bool = False


def save(
    path: pathlib.Path, wanted: Wanted, advance: Callable[..., None]
) -> list[str]:
    """Save the cloud of nova.conf; send SELECT and GET only.

    :param advance: called after each step, as :mod:`..dryrun.progress` says
    :returns: what is left out or not certain, a sentence each
    :raises exception.InvalidValue: what is named does not exist
    :raises cells.CellFailed: a cell does not answer
    :raises OSError: the file cannot be written
    """
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(container.write(path))
        if wanted.anonymous:
            writer = stack.enter_context(
                anonymous.replacing(writer, path.resolve().parent)
            )
        saving = _Saving(writer.write, wanted, advance)
        saving.write_all()
        end = {'lines': writer.lines, 'notes': saving.notes}
        writer.write({'end': end})
    return [*map(container.say_note, saving.notes), *saving.left_out]


class _Saving:
    """:ivar notes: what every answer says; ``left_out``: who saves it.

    A note is as :func:`container.say_note` takes it.
    """

    def __init__(
        self,
        write: Callable[[container.Record], None],
        wanted: Wanted,
        advance: Callable[..., None],
    ) -> None:
        self._write, self._wanted, self._advance = write, wanted, advance
        self._context = process.context()
        mappings = objects.CellMappingList.get_all(self._context)
        self._cells = _choose(mappings, wanted.cell)
        self.notes: list[list[str]] = []
        if wanted.cell is not None:
            self.notes.append(['The file has only cell', wanted.cell])
        self._placement = _read_placement(wanted.placement)
        if self._placement is None:
            self.notes.append(
                [
                    "Placement's own configuration is assumed to have its "
                    'defaults (save with --placement-config to know)'
                ]
            )
        self._hosts = self._find_hosts()
        self._rows = rows.Rows(write, advance, self._hosts)
        self.left_out: list[str] = []

    def write_all(self) -> None:
        """Write everything, and rewrite servers that changed meanwhile."""
        self._write(self._make_header())
        self._advance(total=len(self._cells) + 2, label='Reading databases')
        cell_ids = [one.id for one in self._cells]
        standing = {
            one.uuid: self._in_cell(one, self._rows.write_cell, one.uuid)
            for one in self._cells
        }
        self._rows.write_api(self._context, cell_ids)
        wanted = None
        if self._hosts is not None:
            wanted = {uuid for found in standing.values() for uuid in found}
        self._write_api_servers(cell_ids, standing, wanted)
        read = providers.Providers(
            self._write, self._advance, self._find_roots()
        )
        read.write_words()
        moved: set[str] = set()
        # The first time, everything is new.
        for number in range(TRIES + 1):
            changed = read.write()
            moved = self._read_again(cell_ids, standing) if number else moved
            if number and not changed and not moved:
                break
        else:
            self._note_unsettled(read.unsettled, moved)
        read.write_consumers(self._rows.consumers)
        self.left_out += [
            f'Left out: {one}.'
            for one in lookups.ask(
                self._write, self._rows, self._wanted.images, self._advance
            )
        ]
        if number := self._rows.left_out:
            self.left_out.append(
                f'Left out: {messages.count("row", number)} of metadata whose '
                f'key may name a secret, or that no decision reads.'
            )

    def _read_again(
        self,
        cell_ids: Sequence[int],
        standing: dict[str, dict[str, rows.Standing]],
    ) -> set[str]:
        """Write the servers again that changed; return them.

        :param standing: where servers stood, by UUID of the cell; renewed
        """
        moved: set[str] = set()
        for mapping in self._cells:
            now = self._in_cell(mapping, rows.find_standing, self._hosts)
            changed = rows.find_changed(standing[mapping.uuid], now)
            if changed:
                moved |= changed
                standing[mapping.uuid] = self._in_cell(
                    mapping, self._rows.write_cell, mapping.uuid, changed
                )
        if moved:
            again = {'cell': '', 'servers': sorted(moved)}
            self._write({'again': again})
            self._write_api_servers(cell_ids, standing, moved)
        return moved

    def _write_api_servers(
        self,
        cell_ids: Sequence[int],
        standing: dict[str, dict[str, rows.Standing]],
        wanted: Collection[str] | None,
    ) -> None:
        leaving = rows.find_leaving(standing.values())
        self._rows.write_api_servers(self._context, cell_ids, leaving, wanted)

    def _in_cell(
        self,
        mapping: typing.Any,
        read: Callable[..., typing.Any],
        *args: typing.Any,
    ) -> typing.Any:
        self._advance()
        try:
            with nova_context.target_cell(self._context, mapping) as cctxt:
                return read(cctxt, *args)
        except (exception.NovaExtSchedError, OSError):
            raise
        except Exception as exc:
            raise cells.CellFailed(
                cell=messages.clean(mapping.name or mapping.uuid),
                cause=messages.without_secrets(messages.say_error(exc)),
            ) from exc

    def _note_unsettled(
        self, unsettled: Sequence[str], moved: Collection[str]
    ) -> None:
        self.notes += [
            [
                f'{messages.count(noun, len(names))} changed each time while '
                f'the cloud was saved, and may be half of one moment and half '
                f'of another:',
                *sorted(names),
            ]
            for noun, names in (('provider', unsettled), ('server', moved))
            if names
        ]

    def _find_hosts(self) -> set[str] | None:
        if not self._wanted.aggregates:
            return None
        known = objects.AggregateList.get_all(self._context)
        chosen = [
            named.find_aggregate(known, name)
            for name in self._wanted.aggregates
        ]
        names = [one.name for one in chosen]
        self.notes.append(['The file has only the hosts of', *names])
        return {host for one in chosen for host in one.hosts}

    def _find_roots(self) -> set[str] | None:
        """Return the UUIDs of the only compute nodes; None for all."""
        if self._hosts is None and self._wanted.cell is None:
            return None
        return {
            node.uuid
            for mapping in self._cells
            for node in self._in_cell(mapping, objects.ComputeNodeList.get_all)
            if self._hosts is None or node.host in self._hosts
        }

    def _make_header(self) -> dict[str, typing.Any]:
        options, others = _read_options(CONF)
        if others:
            self.left_out.append(
                f'Left out: the options of {messages.first_few(others)} in '
                f'nova.conf.'
            )
        names = ('nova-ext-sched', 'nova')
        dialect = api_db.get_engine().dialect.name
        binary: set[str] = set()
        if dialect == 'mysql':
            binary = rows.find_binary(self._context, is_cell=False).union(
                *(
                    self._in_cell(one, rows.find_binary, True)
                    for one in self._cells
                )
            )
        return {
            'format': container.FORMAT,
            'saved': timeutils.utcnow().isoformat(timespec='microseconds'),
            'versions': {
                name: importlib.metadata.version(name) for name in names
            },
            'dialect': dialect,
            'binary': sorted(binary),
            'schema': migration.db_version(migrations.API),
            'cells': [
                {
                    'id': mapping.id,
                    'uuid': mapping.uuid,
                    'name': mapping.name,
                    'disabled': bool(mapping.disabled),
                    'schema': self._in_cell(
                        mapping,
                        lambda context: migration.db_version(
                            migrations.CELL, context=context
                        ),
                    )
                    or '',
                }
                for mapping in self._cells
            ],
            'options': options,
            'placement': self._placement,
        }


def _choose(mappings: Sequence[typing.Any], wanted: str | None) -> typing.Any:
    """Return the cells that are saved; cell0 always."""
    if wanted is None:
        return list(mappings)
    names = {
        one.uuid: one.name or '' for one in mappings if not one.is_cell0()
    }
    uuid = named.find('cell', wanted, names)
    return [one for one in mappings if one.uuid == uuid or one.is_cell0()]


def _read_options(
    known: typing.Any,
) -> tuple[dict[str, dict[str, typing.Any]], list[str]]:
    """Return options that are set, and sections that nobody here knows.

    :param known: a ConfigOpts
    """
    options = {
        group: {
            name: messages.change_texts(
                section[name], messages.without_secrets
            )
            for name in names.split()
            if name in section and _is_set(known, name, group)
        }
        for group, names in listed.OPTIONS.items()
        if group == 'DEFAULT' or group in known
        for section in [known if group == 'DEFAULT' else known[group]]
    }
    others = sorted(
        group
        for group in known.list_all_sections()
        if group not in known and not group.startswith(_OF_SERVICES)
    )
    return {one: found for one, found in options.items() if found}, others


def read_file_options(
    files: Sequence[str],
) -> dict[str, dict[str, typing.Any]]:
    """Return the options of nova.conf that a saved cloud would have.

    :param files: paths of nova.conf
    :raises cfg.Error: one cannot be read
    """
    other = cfg.ConfigOpts()
    for group, opts in nova_opts.list_opts():
        name = getattr(group, 'name', group)
        names = listed.OPTIONS.get(name, '').split()
        other.register_opts(
            [one for one in opts if one.dest in names],
            # By its name: copies of a group share what was set in one.
            None if name == 'DEFAULT' else name,
        )
    conf.register_opts(other)
    other([], default_config_files=[*files], default_config_dirs=[])
    return _read_options(other)[0]


def _is_set(known: typing.Any, name: str, group: str) -> bool:
    location = known.get_location(name, None if group == 'DEFAULT' else group)
    return location is not None and location.location is not (
        cfg.Locations.opt_default
    )


def _read_placement(path: pathlib.Path | None) -> dict[str, str] | None:
    """Return the listed options of placement's own file.

    :raises cfg.Error: the file cannot be read
    """
    if path is None:
        return None
    conf = cfg.ConfigOpts()
    names = listed.PLACEMENT.split()
    conf.register_opts([cfg.StrOpt(name) for name in names], 'placement')
    conf([], default_config_files=[str(path)], default_config_dirs=[])
    return {
        name: conf.placement[name]
        for name in names
        if conf.placement[name] is not None
    }
