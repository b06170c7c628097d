package kubelet

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

// cgroupless is Kubernetes' container manager without cgroups, but quiet: the stub
// answers a question about a pod's cgroup with an error, which the kubelet logs
// twice for every change of a pod.
type cgroupless struct{ cm.ContainerManager }

// NewPodContainerManager is the stub's, with an answer of "nothing known".
func (c cgroupless) NewPodContainerManager() cm.PodContainerManager {
	return noPodCgroups{c.ContainerManager.NewPodContainerManager()}
}

type noPodCgroups struct{ cm.PodContainerManager }

func (noPodCgroups) GetPodCgroupConfig(*v1.Pod, v1.ResourceName) (*cm.ResourceConfig, error) {
	return nil, nil
}
