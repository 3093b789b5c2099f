# SPDX-License-Identifier: Apache-2.0

"""nova-ext-sched watch as a process of a deployment."""


def start(cloud, records, interval):
    """Start a watcher; return its process when it has taken a turn.

    :param records: the path of the records
    :param interval: seconds between two turns
    """
    state = records.with_name(f'{records.name}.state')

    def written():
        return state.exists() and state.stat().st_mtime_ns

    before = written()
    process = cloud.processes.start(
        'watch',
        [
            cloud.nova.program('nova-ext-sched'),
            'watch',
            '--config-file',
            cloud.nova.scheduler_conf,
            f'--interval={interval}',
            f'--records={records}',
        ],
    )
    cloud.processes.wait(lambda: written() != before, 'watch')
    return process
