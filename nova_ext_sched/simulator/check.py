# SPDX-License-Identifier: Apache-2.0

"""Reading a scenario file, with everything that is wrong with it."""

from collections.abc import Iterator

from nova_ext_sched import exception
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import form
from nova_ext_sched.simulator import options
from nova_ext_sched.simulator import references
from nova_ext_sched.simulator import scenario


def load(file: str) -> tuple[document.Document, scenario.Scenario]:
    """Read and check a scenario file.

    :param file: the path of the file
    :raises exception.ScenarioInvalid: with every fault that was found
    """
    doc = document.load(file)
    # Two checks may find one fault.
    faults = {
        str(fault): fault
        for check in (form.faults, references.faults, _options)
        for fault in check(doc)
    }
    if faults:
        raise exception.ScenarioInvalid(
            path=file,
            faults=sorted(faults.values(), key=lambda fault: fault.line),
        )
    return doc, scenario.parse(doc.data)


def _options(doc: document.Document) -> Iterator[exception.ScenarioFault]:
    for path in (('nova_conf',), ('plain', 'nova_conf')):
        value = doc.data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, dict):
            continue
        groups = {
            group: values
            for group, values in value.items()
            if isinstance(values, dict)
        }
        for group, option, expected, got in options.unusable(groups):
            place = (group,) if option is None else (group, option)
            yield doc.fault((*path, *place), expected, got)
