"""Configuration files as CubeMaster's users have them."""

from __future__ import annotations

from cubesched.policy.migration.migrate import Manifest, Migration, migrate

SHIPPED = """\
common:
  http_port: 8089
  sync_metric_data_interval: 1s
cubelet_conf:
  common_timeout_insec: 30
  create_concurrent_limit: 100
redis:
  nodes: "127.0.0.1:6379"
  password: "a-secret"
scheduler:
  priority_select_num: 1
  metric_update_timeout: 300s
  local_metric_update_timeout: 300s
  filter:
    enable_filters:
      - "cpu"
      - "mem"
      - "template_locality"
      - "realtime_create_num"
"""
"""What CubeMaster ships."""

DOCUMENTED = """\
scheduler:
  priority_select_num: 3
  score:
    enable_scorers: [real_time_weighted_average]
    resource_weights: {mvm_num: 2, local_create_num: 3, quota_cpu_usage: 1, quota_mem_usage: 1}
    plugin_conf:
      real_time_weighted_average:
        weight: 1.0
        enable_weight_factors: [mvm_num, local_create_num, quota_cpu_usage, quota_mem_usage]
"""
"""Where its documentation says to start."""

FACTORY = """\
scheduler:
  profile_route_label_keys: [workload]
  score:
    resource_weights: {quota_cpu_usage: 1, quota_mem_usage: 1, template_id: 1}
    plugin_conf:
      real_time_weighted_average:
        weight: 1
        enable_weight_factors: [quota_cpu_usage, quota_mem_usage]
      image_score: {weight: 1, enable_weight_factors: [template_id]}
  profiles:
    - name: burst_balance
      route: {labels: {workload: burst_balance}}
      scores:
        - {name: real_time_weighted_average, weight: 1.0}
        - {name: create_concurrency_score, weight: 1.0}
      selection: {top_n: 3, method: spread}
      failure: {filter: fail-closed, score: default-score, no_candidate: backoff}
    - name: template_reuse
      route: {labels: {workload: template_reuse}}
      scores:
        - {name: image_score, weight: 0.7}
        - {name: template_local_pressure, weight: 0.2}
        - {name: real_time_weighted_average, weight: 0.3}
      selection: {top_n: 3, method: spread}
      failure: {filter: fail-closed, score: default-score, no_candidate: backoff}
    - name: mixed_binpack
      default: true
      scores:
        - {name: resource_fit_score, weight: 0.7, args: {imbalance_penalty: 0.5}}
        - {name: real_time_weighted_average, weight: 0.3}
      selection: {top_n: 2, method: spread}
      failure: {filter: fail-closed, score: default-score, no_candidate: backoff}
"""
"""The factory Profiles, as the file inside CubeMaster has them."""

EVERYTHING = """\
cubelet_conf: {create_concurrent_limit: 40}
scheduler:
  profile_route_label_keys: [workload, team]
  disable_factory_profiles: true
  ignore_redis_allocation: true
  overcommit_ratio: {cpu_ratio: 3.0, mem_ratio: 2.0}
  overcommit_ratio_conf: {large: {cpu_ratio: 1.0}}
  node_max_cpu_util: 90
  disk_usage_max_percent: 85.5
  node_max_mem_reserved_in_mb: 2048
  node_max_mvm_num: 1001
  node_max_mvm_num_reserve_num_percent: 0.5
  node_max_mvm_num_conf: {large: {mvm_num: 10}}
  node_max_mem_reserved_conf: {large: {max_mem_reserved_in_mb: 10}}
  metric_update_timeout: 1m30s
  local_metric_update_timeout: 300s
  pre_select_num: 500
  max_mvm_cpu: "100"
  max_mvm_memory: 300Gi
  affinityconf: {cubebox: {enable: true, cluster_labels: {a: 1}}}
  large_size_affinity_conf: {cubebox: {enable: true}}
  instance_type_conf: {large: {oss_cluster_labels: {a: 1}}}
  disable_circuit_filter: true
  disable_backoff_filter_instance_type: {large: true}
  thirtparty_filter_instance_type: {large: true}
  in_backoff_mode: true
  node_affinity_selector_allowed_keys: [rack]
  overhead: {base: 42Mi}
  enable_run_instance_host_ips: true
  reservation_redis_error_policy: fail_open
  scarce_resource_filter: {enable: true, label: gpu}
  filter: {enable_filters: [cpu, mem, disk, node_safety, template_locality, realtime_create_num]}
  score:
    enable_scorers: [real_time_weighted_average, multi_factor_weighted_average, image_score]
    resource_weights: {mvm_num: 2, req_cpu: 1, cpu_util: 3, template_id: 1}
    plugin_conf:
      real_time_weighted_average: {weight: 1, enable_weight_factors: [mvm_num, req_cpu]}
      multi_factor_weighted_average:
        {weight: 0.5, enable_weight_factors: [cpu_util], score_interval: 1s}
      image_score: {weight: 2, enable_weight_factors: [template_id], disable: true}
  postscore:
    disable: false
    param_factor: 0.03
    resource_weights: {active_whitelist: 2, negative_whitelist: 4}
    active_white_list: [node-1]
    negative_white_list: [node-2, Node-3, node_4]
  priority_select_num: 5
  least_select_name: rw
  profiles:
    - name: burst
      route:
        instance_types: ["cube.*"]
        labels: {workload: burst}
      filters:
        - {name: skip-high-create, type: expr, expr: "node.creating < 8"}
      scores:
        - name: prefer-idle
          type: expr
          expr: "node.cpu_util < 60.0 ? 80.0 : 20.0"
          weight: 2
          default_score: 10
        - {name: resource_fit_score, type: go, enabled: false, args: {imbalance_penalty: 1.0}}
      selection: {top_n: 5, method: spread}
      failure: {filter: fail-open, score: fail-closed, no_candidate: backoff}
    - name: rest
      default: false
      route: {labels: {team: a}}
      scores:
        - {name: real_time_weighted_average}
        - {name: multi_factor_weighted_average}
        - {name: image_score, weight: 3}
"""
"""Every key of the table but those of grpc."""


def manifests_of(text: str) -> tuple[Manifest, ...]:
    """The manifests of a file that the compiler must accept."""
    migration = migrate(text)
    assert migration.compiled.problems == ()
    return migration.manifests


def config_of(text: str) -> dict[str, object]:
    """The spec of the SchedulerConfig."""
    return dict(manifests_of(text)[0].spec)


def notes_of(migration: Migration) -> list[str]:
    """Every note, in the order of the file."""
    return [note.text for note in sorted(migration.notes.found)]
