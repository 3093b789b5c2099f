# SPDX-License-Identifier: Apache-2.0

"""Lists the tables, columns, JSON keys and options of a saved cloud.

Everything else stays out of the file, and so does a column that a later nova
adds, until somebody names it here. A column that is added must hold no
secret and no text that a guest reads: no password, token, URL of a
connection, user data or key.
"""

from collections.abc import Mapping
import re
import typing

#: Tables of nova's API database, with their columns.
API = {
    'aggregate_hosts': 'id host aggregate_id created_at',
    'aggregate_metadata': 'id key value aggregate_id created_at updated_at',
    'aggregates': 'id uuid name created_at updated_at',
    'build_requests': 'id instance_uuid project_id instance created_at',
    'flavor_extra_specs': 'id key value flavor_id',
    'flavor_projects': 'id flavor_id project_id',
    'flavors': 'id name memory_mb vcpus root_gb ephemeral_gb flavorid swap '
    'rxtx_factor vcpu_weight disabled is_public created_at updated_at',
    'host_mappings': 'id cell_id host',
    'instance_group_member': 'id instance_uuid group_id',
    'instance_group_policy': 'id policy group_id rules',
    'instance_groups': 'id user_id project_id uuid name created_at updated_at',
    'instance_mappings': 'id instance_uuid cell_id project_id user_id '
    'queued_for_delete',
    'request_specs': 'id instance_uuid spec',
}

_WHEN = ' created_at updated_at deleted_at deleted'

#: Tables of a cell's database, with their columns.
CELL = {
    'block_device_mapping': 'id instance_uuid uuid source_type '
    'destination_type guest_format device_type disk_bus boot_index '
    'device_name delete_on_termination snapshot_id volume_id volume_size '
    'volume_type image_id no_device tag encrypted' + _WHEN,
    'compute_nodes': 'id service_id host uuid vcpus memory_mb local_gb '
    'vcpus_used memory_mb_used local_gb_used hypervisor_type '
    'hypervisor_version hypervisor_hostname free_ram_mb free_disk_gb '
    'current_workload running_vms cpu_info disk_available_least '
    'supported_instances metrics pci_stats stats numa_topology '
    'ram_allocation_ratio cpu_allocation_ratio disk_allocation_ratio '
    'mapped' + _WHEN,
    'instance_actions': 'id action instance_uuid start_time finish_time'
    + _WHEN,
    'instance_actions_events': 'id event action_id start_time finish_time '
    'result host' + _WHEN,
    'instance_extra': 'id instance_uuid numa_topology pci_requests flavor '
    'migration_context vcpu_model' + _WHEN,
    'instance_faults': 'id instance_uuid code message host' + _WHEN,
    'instance_info_caches': 'id network_info instance_uuid' + _WHEN,
    'instance_metadata': 'id key value instance_uuid' + _WHEN,
    'instance_system_metadata': 'id key value instance_uuid' + _WHEN,
    'instances': 'id user_id project_id image_ref launch_index power_state '
    'vm_state task_state memory_mb vcpus root_gb ephemeral_gb host node '
    'compute_id instance_type_id launched_at terminated_at '
    'availability_zone display_name launched_on locked locked_by os_type '
    'architecture vm_mode uuid root_device_name config_drive '
    'auto_disk_config progress cleaned hidden' + _WHEN,
    'migrations': 'id source_compute dest_compute source_node dest_node '
    'dest_compute_id old_instance_type_id new_instance_type_id '
    'instance_uuid uuid status migration_type hidden cross_cell_move' + _WHEN,
    'pci_devices': 'id uuid compute_node_id address vendor_id product_id '
    'dev_type dev_id label status request_id extra_info instance_uuid '
    'numa_node parent_addr' + _WHEN,
    'services': 'id uuid host binary topic report_count disabled '
    'disabled_reason last_seen_up forced_down version' + _WHEN,
    'share_mapping': 'id uuid instance_uuid share_id status tag created_at '
    'updated_at',
}

#: Columns that stay out and that nova's objects cannot be without, with what
#: they have when the file is read.
FILLED = {'share_mapping': {'export_location': '', 'share_proto': 'NFS'}}

#: The keys of a server's system metadata that are kept, as they begin. nova
#: keeps passwords there, too.
SYSTEM_METADATA = ('image_', 'instance_type_', 'old_vm_state', 'shelved_')

#: Any value, as its writer made it.
ANY = object()
#: Objects of nova within it have the fields of :data:`OBJECTS`.
NOVA = object()

#: The columns whose text is JSON, and what it may have: a mapping of keys (or
#: ``*``) to such a form, a list of one, :data:`ANY` or :data:`NOVA`.
JSON: Mapping[str, typing.Any] = {
    'build_requests.instance': NOVA,
    'compute_nodes.cpu_info': ANY,
    'compute_nodes.metrics': ANY,
    'compute_nodes.numa_topology': NOVA,
    'compute_nodes.pci_stats': NOVA,
    'compute_nodes.stats': ANY,
    'compute_nodes.supported_instances': ANY,
    'instance_extra.flavor': {'cur': NOVA, 'old': NOVA, 'new': NOVA},
    'instance_extra.migration_context': NOVA,
    'instance_extra.numa_topology': NOVA,
    'instance_extra.pci_requests': [
        dict.fromkeys(
            'alias_name count is_new numa_policy request_id requester_id '
            'spec'.split(),
            ANY,
        )
    ],
    'instance_extra.vcpu_model': NOVA,
    'instance_group_policy.rules': ANY,
    'instance_info_caches.network_info': [
        {
            'id': ANY,
            'vnic_type': ANY,
            'profile': {'allocation': ANY},
            'network': {
                'id': ANY,
                'meta': {'physical_network': ANY, 'tunneled': ANY},
            },
        }
    ],
    'pci_devices.extra_info': dict.fromkeys(
        'capabilities live_migratable managed one_time_use parent_ifname '
        'remote_managed rp_uuid'.split(),
        ANY,
    ),
    'request_specs.spec': NOVA,
}

_DELETED = ' created_at updated_at deleted_at deleted'

#: The fields of nova's objects within JSON, by the class. An object of another
#: class stays out.
OBJECTS = {
    'CellMapping': 'id uuid name disabled',
    'Destination': 'host node aggregates allow_cross_cell_move '
    'forbidden_aggregates',
    'Flavor': 'id name memory_mb vcpus root_gb ephemeral_gb flavorid swap '
    'rxtx_factor vcpu_weight disabled is_public extra_specs projects'
    + _DELETED,
    'ImageMeta': 'id name status visibility protected owner size '
    'container_format disk_format created_at updated_at min_ram min_disk '
    'properties',
    'ImageMetaProps': 'hw_architecture hw_auto_disk_config hw_boot_menu '
    'hw_cdrom_bus hw_cpu_cores hw_cpu_max_cores hw_cpu_max_sockets '
    'hw_cpu_max_threads hw_cpu_policy hw_cpu_realtime_mask hw_cpu_sockets '
    'hw_cpu_thread_policy hw_cpu_threads hw_device_id hw_disk_bus '
    'hw_disk_type hw_emulation_architecture hw_ephemeral_encryption '
    'hw_ephemeral_encryption_format hw_firmware_stateless hw_firmware_type '
    'hw_floppy_bus hw_input_bus hw_ipxe_boot hw_locked_memory '
    'hw_machine_type hw_maxphysaddr_bits hw_maxphysaddr_mode '
    'hw_mem_encryption hw_mem_encryption_model hw_mem_page_size '
    'hw_numa_cpus hw_numa_mem hw_numa_nodes hw_pci_numa_affinity_policy '
    'hw_pmu hw_pointer_model hw_qemu_guest_agent hw_redirected_usb_ports '
    'hw_rescue_bus hw_rescue_device hw_rng_model hw_scsi_model '
    'hw_serial_port_count hw_sound_model hw_time_hpet hw_tpm_model '
    'hw_tpm_version hw_usb_model hw_vif_model hw_vif_multiqueue_enabled '
    'hw_video_model hw_video_ram hw_viommu_model hw_virtio_packed_ring '
    'hw_vm_mode hw_watchdog_action img_bdm_v2 img_cache_in_nova '
    'img_config_drive img_hide_hypervisor_id img_hv_requested_version '
    'img_hv_type img_linked_clone img_use_agent img_version os_distro '
    'os_require_quiesce os_secure_boot os_type traits_required',
    'Instance': 'id user_id project_id image_ref launch_index power_state '
    'vm_state task_state memory_mb vcpus root_gb ephemeral_gb host node '
    'instance_type_id launched_at terminated_at availability_zone '
    'display_name locked locked_by os_type architecture vm_mode uuid '
    'config_drive hidden numa_topology pci_requests flavor old_flavor '
    'new_flavor' + _DELETED,
    'InstanceGroup': 'id user_id project_id uuid name policies members hosts '
    'policy _rules' + _DELETED,
    'InstanceNUMACell': 'id cpuset pcpuset cpuset_reserved memory pagesize '
    'cpu_topology cpu_pinning_raw cpu_policy cpu_thread_policy',
    'InstanceNUMATopology': 'id instance_uuid cells emulator_threads_policy',
    'InstancePCIRequest': 'count spec alias_name is_new request_id '
    'requester_id numa_policy',
    'InstancePCIRequests': 'instance_uuid requests',
    'MigrationContext': 'instance_uuid migration_id new_numa_topology '
    'old_numa_topology new_pci_devices old_pci_devices new_pci_requests '
    'old_pci_requests new_resources old_resources',
    'NUMACell': 'id cpuset pcpuset memory cpu_usage memory_usage pinned_cpus '
    'siblings mempages network_metadata socket',
    'NUMAPagesTopology': 'size_kb total used reserved',
    'NUMATopology': 'cells',
    'NUMATopologyLimits': 'cpu_allocation_ratio ram_allocation_ratio '
    'network_metadata',
    'NetworkMetadata': 'physnets tunneled',
    'PciDevice': 'id uuid compute_node_id address vendor_id product_id '
    'dev_type status dev_id label instance_uuid request_id numa_node '
    'parent_addr',
    'PciDeviceList': 'objects',
    'PciDevicePool': 'product_id vendor_id numa_node tags count',
    'PciDevicePoolList': 'objects',
    'RequestSpec': 'id image numa_topology pci_requests project_id user_id '
    'availability_zone flavor num_instances ignore_hosts force_hosts '
    'force_nodes limits instance_group scheduler_hints instance_uuid is_bfv',
    'Resource': 'provider_uuid resource_class identifier',
    'ResourceList': 'objects',
    'SchedulerLimits': 'numa_topology vcpu disk_gb memory_mb',
    'VirtCPUFeature': 'policy name',
    'VirtCPUModel': 'arch vendor topology features mode model match',
    'VirtCPUTopology': 'sockets cores threads',
}

#: Options of nova.conf, by group.
OPTIONS = {
    'DEFAULT': 'allow_resize_to_same_host cpu_allocation_ratio '
    'default_availability_zone default_schedule_zone '
    'disk_allocation_ratio initial_cpu_allocation_ratio '
    'initial_disk_allocation_ratio initial_ram_allocation_ratio '
    'internal_service_availability_zone pointer_model ram_allocation_ratio '
    'report_interval reserved_host_cpus reserved_host_disk_mb '
    'reserved_host_memory_mb service_down_time',
    'blazar:physical:host': 'aggregate_freepool_name allow_preemptibles '
    'blazar_az_prefix blazar_owner preemptible_aggregate project_id_key',
    'cinder': 'cross_az_attach',
    'compute': 'cpu_dedicated_set cpu_shared_set '
    'max_disk_devices_to_attach packing_host_numa_cells_allocation_strategy '
    'sharing_providers_max_uuids_per_request',
    'filter_scheduler': 'aggregate_image_properties_isolation_namespace '
    'aggregate_image_properties_isolation_separator available_filters '
    'build_failure_weight_multiplier cpu_weight_multiplier '
    'cross_cell_move_weight_multiplier disk_weight_multiplier '
    'enabled_filters host_subset_size hypervisor_version_weight_multiplier '
    'image_properties_default_architecture image_props_weight_multiplier '
    'image_props_weight_setting io_ops_weight_multiplier isolated_hosts '
    'isolated_images max_instances_per_host max_io_ops_per_host '
    'num_instances_weight_multiplier pci_in_placement pci_weight_multiplier '
    'ram_weight_multiplier restrict_isolated_hosts_to_isolated_images '
    'shuffle_best_same_weighed_hosts soft_affinity_weight_multiplier '
    'soft_anti_affinity_weight_multiplier track_instance_changes '
    'weight_classes',
    'libvirt': 'hw_machine_type virt_type',
    'metrics': 'required weight_multiplier weight_of_unavailable '
    'weight_setting',
    'nova_ext_sched': 'enable_failover_hosts '
    'enable_isolated_aggregate_filtering failover_hosts_weight_multiplier '
    'failover_key failover_takes '
    'failure_domain_key forbid_by_trait force_metadata_check_ignored_keys '
    'isolation_trait_sources left_out_flavors left_out_images '
    'left_out_projects left_out_property licence_os_types licence_traits '
    'licences_weight_multiplier max_forbidden_aggregates '
    'max_server_per_failure_domain member_project_keys member_sources '
    'own_hosts_weight_multiplier '
    'placement_req_default_forbidden_member_prefix '
    'placement_req_required_member_prefix preference_key '
    'preferred_aggregates_weight_multiplier '
    'relative_room_weight_multiplier request_filters '
    'restart_priority_key restart_priority_sources '
    'server_group_round_robin_weight_multiplier special_hosts_key '
    'special_hosts_weight_multiplier weighers',
    'pci': 'alias report_in_placement',
    'placement': 'region_name',
    'quota': 'count_usage_from_placement recheck_quota',
    'scheduler': 'enable_isolated_aggregate_filtering '
    'image_metadata_prefilter limit_tenants_to_placement_aggregate '
    'max_attempts max_placement_results '
    'placement_aggregate_required_for_tenants '
    'query_placement_for_image_type_support '
    'query_placement_for_routed_network_aggregates',
    'workarounds': 'disable_compute_service_check_for_ffu '
    'disable_fallback_pcpu_query disable_group_policy_check_upcall '
    'enable_numa_live_migration reserve_disk_resource_for_image_cache '
    'skip_cpu_compare_on_dest skip_hypervisor_version_check_on_lm '
    'unified_limits_count_pcpu_as_vcpu',
}

#: Options of placement's own configuration, of ``[placement]``, that count.
PLACEMENT = (
    'max_allocation_candidates allocation_candidates_generation_strategy '
    'randomize_allocation_candidates'
)

#: What is kept of images, volumes and ports.
IMAGE = dict.fromkeys(
    'id name status min_disk min_ram size disk_format container_format '
    'created_at updated_at'.split(),
    ANY,
) | {'properties': {'*': ANY}}
VOLUME = {'id': ANY, 'bootable': ANY, 'volume_image_metadata': {'*': ANY}}
PORT = {
    'id': ANY,
    'device_id': ANY,
    'network_id': ANY,
    'resource_request': ANY,
    'binding:vnic_type': ANY,
    'fixed_ips': [{'subnet_id': ANY}],
}

# A key of a free mapping (of a flavor, image or hint) that is no policy's.
_SECRET = re.compile(
    'pass(word|wd|phrase)|token|secret|credential|private_?key', re.IGNORECASE
)

# How deep JSON within a column may be; nova's own is a dozen levels.
_DEEPEST = 40

_NAME = 'nova_object.name'
#: Where the fields of nova's objects are.
DATA = 'nova_object.data'
_CHANGES = 'nova_object.changes'
_OF_OBJECT = (_NAME, _CHANGES, 'nova_object.version', 'nova_object.namespace')


def keeps_key(table: str, key: str | None) -> bool:
    """Return whether a row of a table of keys and values is kept."""
    if _SECRET.search(key or ''):
        return False
    return table != 'instance_system_metadata' or (key or '').startswith(
        SYSTEM_METADATA
    )


class TooDeep(ValueError):
    """JSON has more levels than nova ever writes."""


def prune(form: typing.Any, value: typing.Any, depth: int = 0) -> typing.Any:
    """Keep the listed keys of JSON.

    ==============================  =========================================
    in the value                    what is left
    ==============================  =========================================
    a key that the form has         its value, by the form's part
    another key                     nothing
    any key of a free mapping       its value, unless it is called a secret
    an object of nova               its fields that :data:`OBJECTS` names
    one of another class            None
    a list where none is expected,  None
    or no list where one is
    ==============================  =========================================

    :raises TooDeep: it has too many levels
    """
    if depth > _DEEPEST:
        raise TooDeep
    if isinstance(form, list):
        if not isinstance(value, list):
            return None
        return [prune(form[0], one, depth + 1) for one in value]
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            return None
        return {
            key: prune(form.get(key, form.get('*')), one, depth + 1)
            for key, one in value.items()
            if key in form or ('*' in form and not _SECRET.search(key))
        }
    if isinstance(value, list):
        return [prune(form, one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    if form is NOVA and _NAME in value:
        return _prune_object(value, depth)
    return {
        key: prune(form, one, depth + 1)
        for key, one in value.items()
        if not _SECRET.search(key)
    }


def _prune_object(value: dict[str, typing.Any], depth: int) -> typing.Any:
    name, data = value[_NAME], value.get(DATA)
    if name not in OBJECTS or not isinstance(data, dict):
        return None
    known = OBJECTS[name].split()
    kept = {
        key: prune(NOVA, data[key], depth + 1) for key in known if key in data
    }
    # A field that is None because its object stays out would be one.
    kept = {
        key: one
        for key, one in kept.items()
        if one is not None or data[key] is None
    }
    pruned = {key: value[key] for key in _OF_OBJECT if key in value}
    if isinstance(changes := pruned.get(_CHANGES), list):
        pruned[_CHANGES] = [one for one in changes if one in kept]
    return {**pruned, DATA: kept}
