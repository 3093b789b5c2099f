# SPDX-License-Identifier: Apache-2.0

"""What ``nova-ext-sched watch`` does with its arguments."""

import argparse
import os
import typing

from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.watch import cells as watched_cells
from nova_ext_sched.watch import explainer
from nova_ext_sched.watch import feed
from nova_ext_sched.watch import interrupt
from nova_ext_sched.watch import metrics
from nova_ext_sched.watch import recorder
from nova_ext_sched.watch import sink


def watch(parsed_args: argparse.Namespace) -> typing.NoReturn:
    """Record refusals until a signal comes."""
    signals = interrupt.Interrupt()
    path, state = parsed_args.records, parsed_args.state
    if path and not state:
        state = path.with_name(f'{path.name}.state')
    figures = metrics.Metrics()
    asked = cells.Cells()
    # Its owner and group alone read what it writes.
    os.umask(0o027)
    try:
        kept = sink.Sink(path, state)
        recording = recorder.Recorder(
            feed.Feed(watched_cells.Cells(asked), kept.read()),
            explainer.Explainer(
                figures,
                signals,
                asked,
                parsed_args.explanations_per_minute,
            ),
            kept,
            figures,
            signals,
        )
        if parsed_args.metrics_port is not None:
            figures.serve(
                parsed_args.metrics_port, parsed_args.metrics_address
            )
    except OSError as exc:
        raise exception.InvalidValue(
            where='nova-ext-sched watch',
            expected='files that can be written and a free port',
            got=str(exc),
        ) from exc
    signals.install()
    recording.run(parsed_args.interval)
    # Everything is written. Python would wait for the threads that wait
    # for a cell's database.
    os._exit(base.FINE)
