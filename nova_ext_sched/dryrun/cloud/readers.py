# SPDX-License-Identifier: Apache-2.0

"""Readers of each option of nova.conf.

An answer as if nova-scheduler's nova.conf had an option is worth nothing
where other services read it. ``tests/unit/dryrun/cloud/test_readers.py`` looks
for them in the code of nova.
"""

from collections.abc import Iterable
import fnmatch

from nova_ext_sched import exception

#: Options of nova-compute by which hosts report how much they have, each with
#: placement's class: of all hosts, of new ones, and what hosts keep.
RATIOS = {
    'cpu_allocation_ratio': 'VCPU',
    'ram_allocation_ratio': 'MEMORY_MB',
    'disk_allocation_ratio': 'DISK_GB',
}
INITIAL = {f'initial_{name}': class_ for name, class_ in RATIOS.items()}
RESERVED = {
    'reserved_host_cpus': 'VCPU',
    'reserved_host_memory_mb': 'MEMORY_MB',
    'reserved_host_disk_mb': 'DISK_GB',
}
#: Those of which the answer knows what they would bring.
COUNTED = RATIOS | INITIAL | RESERVED

#: Those that an act may change on a host that there is, each with the class
#: and the field of its inventory. Disks are left out: what has the room is
#: often shared by hosts.
AMOUNTS = {
    option: (class_, field)
    for options, field in (
        (RATIOS, 'allocation_ratio'),
        (RESERVED, 'reserved'),
    )
    for option, class_ in options.items()
    if class_ != 'DISK_GB'
}

# By the service that reads them; ``*`` stands for anything.
_READ_BY = {
    'nova-compute': """
        arq_binding_timeout block_device_allocate_* cinder.catalog_info
        cinder.endpoint_template cinder.http_retries cinder.os_region_name
        compute.consecutive_build_service_disable_threshold
        compute.cpu_dedicated_set compute.cpu_shared_set
        compute.image_type_exclude_list
        compute.live_migration_wait_for_vif_plug
        compute.max_concurrent_disk_ops compute.provider_config_location
        compute.shutdown_retry_interval compute.update_resources_max_workers
        compute.vmdk_allowed_types compute_driver compute_monitors
        config_drive_format consoleauth.token_ttl
        default_access_ip_network_name devices.* enable_new_services
        ephemeral_storage_encryption.default_format force_config_drive
        force_raw_images guestfs.* heal_instance_info_cache_interval
        image_cache.* injected_network_template instance_build_timeout
        instance_delete_interval instance_usage_audit instances_path ironic.*
        key_manager.backend libvirt.* live_migration_retry_count
        manila.share_apply_* max_concurrent_*
        maximum_instance_delete_attempts mkisofs_cmd mks.*
        my_ip network_allocate_retries neutron.physnets pci.device_spec
        pci.report_in_placement pointer_model preallocate_images
        quota.unified_limits_resource_* reboot_timeout
        reclaim_instance_interval reimage_timeout_per_gb rescue_timeout
        reserved_huge_pages
        resize_confirm_window resize_fs_using_block_device
        resume_guests_state_on_host_boot running_deleted_instance_*
        scheduler_instance_sync_interval serial_console.* shelved_offload_time
        shelved_poll_interval shutdown_timeout spice.*
        stale_share_access_reconcile_interval state_path
        sync_power_state_* timeout_nbd update_resources_interval
        use_cow_images vcpu_pin_set vif_plugging_* virt_mkfs vmware.* vnc.*
        volume_usage_poll_interval
        workarounds.[!de]* workarounds.disable_[!cfr]*
        workarounds.enable_[!n]* workarounds.ensure_* zvm.*
    """,
    'nova-api': """
        api.auth_strategy api.compute_link_prefix
        api.config_drive_skip_versions api.dhcp_domain
        api.enable_instance_password api.glance_link_prefix
        api.local_metadata_per_cell api.metadata_cache_expiration
        api.neutron_default_* api.response_validation enabled_*apis
        api.use_* api.vendordata_* neutron.*metadata_proxy* wsgi.*
        osapi_compute_* metadata_*
    """,
    'nova-conductor': 'conductor.* migrate_max_retries',
    'the console proxies': 'console.* consoleauth.enforce_session_timeout',
}

# Those that nova-scheduler reads, or what of nova answers beside it here.
_OF_THE_SCHEDULER = """
    allow_resize_to_same_host api.* blazar:* cinder.cross_az_attach
    compute.max_disk_devices_to_attach
    compute.packing_host_numa_cells_allocation_strategy
    compute.resource_provider_association_refresh
    compute.sharing_providers_max_uuids_per_request cell_worker_*
    default_availability_zone default_schedule_zone filter_scheduler.*
    long_rpc_timeout max_local_block_devices metrics.* nova_ext_sched.*
    pci.alias quota.* scheduler.* service_down_time servicegroup_driver
    upgrade_levels.* workarounds.*
"""


def find(option: str) -> str:
    """Return the service that reads an option, and not nova-scheduler.

    :param option: ``name`` for ``[DEFAULT]`` or ``group.name``
    :returns: empty where none is known
    """
    option = _shorten(option)
    readers = (one for one in _READ_BY if _matches(option, _READ_BY[one]))
    return next(readers, '')


def check(option: str) -> str:
    """Refuse an option that nova-scheduler does not read.

    :param option: see :func:`find`
    :returns: a remark on one of which nobody knows who reads it; else empty
    :raises exception.InvalidValue: another service reads it
    """
    if _shorten(option) in COUNTED:
        return ''
    if reader := find(option):
        raise exception.InvalidValue(
            where='--option',
            expected='an option that nova-scheduler reads',
            got=f'{option}, which {reader} reads',
        )
    if _matches(_shorten(option), _OF_THE_SCHEDULER):
        return ''
    return f'Perhaps nova-scheduler does not read {option}.'


def choose_counted(options: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the values of the options that are :data:`COUNTED`.

    :param options: name, see :func:`find`, and value of each
    """
    shortened = ((_shorten(name), value) for name, value in options)
    return {name: value for name, value in shortened if name in COUNTED}


def _shorten(option: str) -> str:
    return option.removeprefix('DEFAULT.')


def _matches(option: str, patterns: str) -> bool:
    return any(
        fnmatch.fnmatchcase(option, pattern) for pattern in patterns.split()
    )
