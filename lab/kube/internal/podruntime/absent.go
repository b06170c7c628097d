package podruntime

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The rest of the CRI. What needs cgroups either has no effect, like a limit that
// is not enforced, or has no numbers to show; what is refused says so.

func absent(what string) error {
	return status.Errorf(codes.Unimplemented, "the lab's runtime has no %s", what)
}

// UpdateContainerResources accepts new limits; none are enforced.
func (r *Runtime) UpdateContainerResources(context.Context, string, *cri.ContainerResources) error {
	return nil
}

// UpdatePodSandboxResources accepts new limits; none are enforced.
func (r *Runtime) UpdatePodSandboxResources(context.Context, *cri.UpdatePodSandboxResourcesRequest) (*cri.UpdatePodSandboxResourcesResponse, error) {
	return &cri.UpdatePodSandboxResourcesResponse{}, nil
}

// CheckpointContainer is refused.
func (r *Runtime) CheckpointContainer(context.Context, *cri.CheckpointContainerRequest) error {
	return absent("checkpoints")
}

// GetContainerEvents is refused; the kubelet then asks once a second, as by default.
func (r *Runtime) GetContainerEvents(context.Context, chan *cri.ContainerEventResponse, func(cri.RuntimeService_GetContainerEventsClient)) error {
	return absent("container events")
}

// ContainerStats is refused.
func (r *Runtime) ContainerStats(context.Context, string) (*cri.ContainerStats, error) {
	return nil, absent("statistics")
}

// ListContainerStats has nothing to list.
func (r *Runtime) ListContainerStats(context.Context, *cri.ContainerStatsFilter) ([]*cri.ContainerStats, error) {
	return nil, nil
}

// PodSandboxStats is refused.
func (r *Runtime) PodSandboxStats(context.Context, string) (*cri.PodSandboxStats, error) {
	return nil, absent("statistics")
}

// ListPodSandboxStats has nothing to list.
func (r *Runtime) ListPodSandboxStats(context.Context, *cri.PodSandboxStatsFilter) ([]*cri.PodSandboxStats, error) {
	return nil, nil
}

// ListMetricDescriptors has nothing to list.
func (r *Runtime) ListMetricDescriptors(context.Context) ([]*cri.MetricDescriptor, error) {
	return nil, nil
}

// ListPodSandboxMetrics has nothing to list.
func (r *Runtime) ListPodSandboxMetrics(context.Context) ([]*cri.PodSandboxMetrics, error) {
	return nil, nil
}
