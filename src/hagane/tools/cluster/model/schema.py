"""Which fields the objects of Kubernetes have, so that a misspelt one is found.

A field maps to "" (anything goes; hagane does not look inside), to the name of a type, to
``[Name]`` (a list of it) or to ``{}`` (a map from text to text or numbers). Source: the API
reference of Kubernetes 1.34 (core/v1, batch/v1, apps/v1, policy/v1, scheduling/v1).
"""

from __future__ import annotations

from typing import Any

from hagane.tools.cluster.model.documents import Place


def _opaque(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), "")


_TOP = {"apiVersion": "", "kind": "", "metadata": "ObjectMeta"}
_SELECTOR = {"matchLabels": "{}", "matchExpressions": "[Requirement]"}

SCHEMA: dict[str, dict[str, str]] = {
    "ObjectMeta": {
        **_opaque(
            "name generateName namespace uid resourceVersion generation creationTimestamp "
            "deletionTimestamp deletionGracePeriodSeconds finalizers managedFields selfLink "
            "clusterName"
        ),
        "labels": "{}",
        "annotations": "",
        "ownerReferences": "[OwnerReference]",
    },
    "OwnerReference": _opaque("apiVersion kind name uid controller blockOwnerDeletion"),
    "Requirement": _opaque("key operator values"),
    "LabelSelector": _SELECTOR,
    "Node": {**_TOP, "spec": "NodeSpec", "status": "NodeStatus"},
    "NodeSpec": {
        **_opaque("podCIDR podCIDRs providerID externalID unschedulable configSource"),
        "taints": "[Taint]",
    },
    "Taint": _opaque("key value effect timeAdded"),
    "NodeStatus": {
        **_opaque(
            "phase conditions addresses daemonEndpoints nodeInfo volumesInUse volumesAttached "
            "config runtimeHandlers features declaredFeatures"
        ),
        "capacity": "{}",
        "allocatable": "{}",
        "images": "[ContainerImage]",
    },
    "ContainerImage": _opaque("names sizeBytes"),
    "Pod": {**_TOP, "spec": "PodSpec", "status": "PodStatus"},
    "PodStatus": _opaque(
        "phase conditions message reason nominatedNodeName hostIP hostIPs podIP podIPs startTime "
        "initContainerStatuses containerStatuses qosClass ephemeralContainerStatuses resize "
        "resourceClaimStatuses observedGeneration extendedResourceClaimStatus allocatedResources "
        "resources"
    ),
    "PodSpec": {
        **_opaque(
            "volumes ephemeralContainers restartPolicy terminationGracePeriodSeconds "
            "activeDeadlineSeconds dnsPolicy serviceAccountName serviceAccount "
            "automountServiceAccountToken nodeName hostNetwork hostPID hostIPC "
            "shareProcessNamespace securityContext imagePullSecrets hostname subdomain "
            "schedulerName hostAliases priorityClassName priority dnsConfig readinessGates "
            "runtimeClassName enableServiceLinks preemptionPolicy setHostnameAsFQDN os hostUsers "
            "resourceClaims hostnameOverride workloadRef schedulingGroup"
        ),
        "containers": "[Container]",
        "initContainers": "[Container]",
        "nodeSelector": "{}",
        "affinity": "Affinity",
        "tolerations": "[Toleration]",
        "overhead": "{}",
        "topologySpreadConstraints": "[TopologySpread]",
        "schedulingGates": "[SchedulingGate]",
        "resources": "Resources",
    },
    "SchedulingGate": _opaque("name"),
    "Container": {
        **_opaque(
            "name image command args workingDir envFrom env resizePolicy restartPolicy "
            "restartPolicyRules volumeMounts volumeDevices livenessProbe readinessProbe "
            "startupProbe lifecycle terminationMessagePath terminationMessagePolicy "
            "imagePullPolicy securityContext stdin stdinOnce tty"
        ),
        "ports": "[ContainerPort]",
        "resources": "Resources",
    },
    "ContainerPort": _opaque("name hostPort containerPort protocol hostIP"),
    "Resources": {"limits": "{}", "requests": "{}", "claims": ""},
    "Toleration": _opaque("key operator value effect tolerationSeconds"),
    "Affinity": {
        "nodeAffinity": "NodeAffinity",
        "podAffinity": "PodAffinity",
        "podAntiAffinity": "PodAffinity",
    },
    "NodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": "NodeSelector",
        "preferredDuringSchedulingIgnoredDuringExecution": "[PreferredNode]",
    },
    "NodeSelector": {"nodeSelectorTerms": "[NodeTerm]"},
    "NodeTerm": {"matchExpressions": "[Requirement]", "matchFields": "[Requirement]"},
    "PreferredNode": {"weight": "", "preference": "NodeTerm"},
    "PodAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": "[PodTerm]",
        "preferredDuringSchedulingIgnoredDuringExecution": "[WeightedPodTerm]",
    },
    "WeightedPodTerm": {"weight": "", "podAffinityTerm": "PodTerm"},
    "PodTerm": {
        **_opaque("namespaces topologyKey matchLabelKeys mismatchLabelKeys"),
        "labelSelector": "LabelSelector",
        "namespaceSelector": "LabelSelector",
    },
    "TopologySpread": {
        **_opaque(
            "maxSkew topologyKey whenUnsatisfiable minDomains nodeAffinityPolicy "
            "nodeTaintsPolicy matchLabelKeys"
        ),
        "labelSelector": "LabelSelector",
    },
    "PriorityClass": {**_TOP, **_opaque("value globalDefault description preemptionPolicy")},
    "PodDisruptionBudget": {**_TOP, "spec": "BudgetSpec", "status": "BudgetStatus"},
    "BudgetSpec": {
        **_opaque("minAvailable maxUnavailable unhealthyPodEvictionPolicy"),
        "selector": "LabelSelector",
    },
    "BudgetStatus": _opaque(
        "observedGeneration disruptedPods disruptionsAllowed currentHealthy desiredHealthy "
        "expectedPods conditions"
    ),
    "Template": {"metadata": "ObjectMeta", "spec": "PodSpec"},
    "Job": {**_TOP, "spec": "JobSpec", "status": ""},
    "JobSpec": {
        **_opaque(
            "parallelism completions activeDeadlineSeconds podFailurePolicy successPolicy "
            "backoffLimit backoffLimitPerIndex maxFailedIndexes manualSelector "
            "ttlSecondsAfterFinished completionMode suspend podReplacementPolicy managedBy"
        ),
        "selector": "LabelSelector",
        "template": "Template",
    },
    "Deployment": {**_TOP, "spec": "ReplicasSpec", "status": ""},
    "ReplicasSpec": {
        **_opaque(
            "replicas strategy minReadySeconds revisionHistoryLimit paused "
            "progressDeadlineSeconds serviceName volumeClaimTemplates updateStrategy "
            "podManagementPolicy persistentVolumeClaimRetentionPolicy ordinals"
        ),
        "selector": "LabelSelector",
        "template": "Template",
    },
    "PersistentVolume": {**_TOP, "spec": "VolumeSpec", "status": ""},
    "VolumeSpec": {
        **_opaque(
            "capacity accessModes claimRef persistentVolumeReclaimPolicy storageClassName "
            "mountOptions volumeMode volumeAttributesClassName hostPath local nfs csi iscsi fc rbd "
            "cephfs awsElasticBlockStore gcePersistentDisk azureDisk azureFile cinder "
            "flexVolume flocker glusterfs photonPersistentDisk portworxVolume quobyte scaleIO "
            "storageos vsphereVolume"
        ),
        "nodeAffinity": "VolumeAffinity",
    },
    "VolumeAffinity": {"required": "NodeSelector"},
    "PersistentVolumeClaim": {**_TOP, "spec": "ClaimSpec", "status": ""},
    "ClaimSpec": {
        **_opaque(
            "accessModes storageClassName volumeMode volumeName dataSource dataSourceRef "
            "volumeAttributesClassName"
        ),
        "resources": "Resources",
        "selector": "LabelSelector",
    },
    "StorageClass": {
        **_TOP,
        **_opaque(
            "provisioner parameters reclaimPolicy mountOptions allowVolumeExpansion "
            "volumeBindingMode"
        ),
        "allowedTopologies": "[Topology]",
    },
    "Topology": {"matchLabelExpressions": "[TopologyRequirement]"},
    "TopologyRequirement": _opaque("key values"),
    "Service": {**_TOP, "spec": "", "status": ""},
    "Namespace": {**_TOP, "spec": "", "status": ""},
    "PodGroup": {**_TOP, "spec": "PodGroupSpec", "status": ""},
    "PodGroupSpec": _opaque(
        "minMember minResources scheduleTimeoutSeconds minTaskMember queue priorityClassName "
        "networkTopology subGroupPolicy"
    ),
}
SCHEMA["ReplicaSet"] = SCHEMA["StatefulSet"] = SCHEMA["Deployment"]


def check_fields(value: Any, type_name: str, place: Place) -> None:
    """Verify that an object has only fields of its type, to the depth of the schema.

    Raises:
        InvalidManifest: for the first unknown field, or a value of the wrong kind.
    """
    if value is None:
        return
    if not isinstance(value, dict):
        raise place.error(f"expected an object ({type_name}), got {_kind(value)}")
    known = SCHEMA[type_name]
    for name, inner in value.items():
        here = place / str(name)
        if name not in known:
            raise here.error(f"unknown field {name!r} of {type_name}{nearest(str(name), known)}")
        expected = known[name]
        if not expected or inner is None:
            continue
        if expected == "{}":
            if not isinstance(inner, dict):
                raise here.error(f"expected a map, got {_kind(inner)}")
        elif expected.startswith("["):
            if not isinstance(inner, list):
                raise here.error(f"expected a list, got {_kind(inner)}")
            for index, item in enumerate(inner):
                if item is None:
                    raise (here / index).error(f"expected an object ({expected[1:-1]}), got null")
                check_fields(item, expected[1:-1], here / index)
        else:
            check_fields(inner, expected, here)


def nearest(name: str, known: Any) -> str:
    """Return a hint at the known name that was probably meant, or nothing."""
    import difflib

    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _kind(value: Any) -> str:
    names = {dict: "a map", list: "a list", str: "a string", bool: "a boolean"}
    return names.get(type(value), f"{value!r}")
