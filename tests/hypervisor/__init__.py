# SPDX-License-Identifier: Apache-2.0

"""Plans carried out on real hypervisors: libvirt and QEMU, on one machine.

``libvirt_hosts`` is the project's cloud (``tests.cloud``) with nova's libvirt
driver. Each host is a set of namespaces with a libvirtd of its own (the
scripts in ``host``); QEMU emulates the guests, so that no KVM is needed.
"""
