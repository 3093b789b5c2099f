# SPDX-License-Identifier: Apache-2.0

"""One run of a scenario on one cloud, told as events."""

from collections.abc import Callable
import dataclasses
import logging

from nova_ext_sched.simulator import cloud
from nova_ext_sched.simulator import fixtures as sim_fixtures
from nova_ext_sched.simulator import reasons
from nova_ext_sched.simulator import scenario
from nova_ext_sched.simulator import steps
from nova_ext_sched.simulator import worker

LOG = logging.getLogger(__name__)

_FORMAT = '%(asctime)s {cloud} %(levelname)s %(name)s: %(message)s'


class Session:
    """Runs what a worker is asked for.

    :param request: what to run
    :param send: takes the name of an event and its data
    """

    def __init__(
        self, request: worker.Request, send: Callable[..., None]
    ) -> None:
        self._request = request
        self._scenario = scenario.parse(request.data)
        self._send = send
        self._reasons = reasons.Reasons()
        self._stands = False
        self._over = False

    def run(self) -> None:
        """Build the cloud, run the steps, and take it down."""
        simulated = cloud.Cloud(
            self._scenario,
            self._request.plain,
            self._logging(),
            self._run_steps,
            self._host_is_up,
        )
        try:
            cloud.run(simulated)
        except cloud.Refused as exc:
            self._send('refused', path=exc.path, cause=exc.cause)
        except Exception as exc:
            LOG.exception('The simulated cloud raised')
            cause = f'{type(exc).__name__}: {exc}'
            if self._over:
                # Taking it down is nova's business; the steps were run.
                self._send('finished')
            elif self._stands:
                self._send('failed', cause=cause)
            else:
                self._send('unstarted', cause=cause)
        else:
            self._send('finished')

    def _host_is_up(self, number: int) -> None:
        self._stands = True
        self._send('host', number=number)

    def _run_steps(self, simulated: cloud.Cloud) -> None:
        # What was logged while the cloud was built is no step's.
        self._reasons.take()
        runner = steps.Steps(simulated, lambda: self._send('server'))
        for index, step in enumerate(self._scenario.steps):
            placements = runner.run(step)
            self._send(
                'step',
                index=index,
                placements=[
                    dataclasses.asdict(placement) for placement in placements
                ],
                reasons=self._reasons.take(),
            )
        self._over = True

    def _logging(self) -> sim_fixtures.Logging:
        handlers: list[logging.Handler] = [self._reasons]
        levels = dict(reasons.LEVELS)
        log_file = self._request.log_file
        if log_file is not None:
            handler = (
                logging.StreamHandler()
                if log_file == worker.STDERR
                else logging.FileHandler(log_file)
            )
            handler.setLevel(self._request.log_level)
            handler.setFormatter(
                logging.Formatter(
                    _FORMAT.format(cloud=worker.name(self._request.plain))
                )
            )
            handlers.append(handler)
            levels[''] = logging.getLevelName(self._request.log_level)
        return sim_fixtures.Logging(handlers, levels)
