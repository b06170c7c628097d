// Package podruntime is the container runtime behind the lab's kubelet: the CRI as
// Go interfaces, in process. A pod sandbox is a process that holds namespaces, a
// container is a process over an overlay of the machine's root. There are no
// images and no cgroups.
//
// Every process has a monitor of its own (lab/shim), and what the runtime knows is
// in files, so the kubelet can be killed and started again without losing a pod.
// Read Runtime, then sandbox.go and container.go.
package podruntime

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"

	"sallyport.test/lab/kube/internal/cni"
	"sallyport.test/lab/kube/internal/images"
	"sallyport.test/lab/shim/spec"
)

const runtimeName, runtimeVersion = "lab", "1.0.0"

// Options is what a Runtime needs to know.
type Options struct {
	Node    string // host name of pods in the node's network namespace
	Dir     string // records, sockets and files of pods
	Shim    string
	Network cni.Network
	Images  images.Table
	Binds   []string // mounts of the machine that every container sees
}

// Runtime implements the CRI's RuntimeService. Its methods may be called at the
// same time; mu guards both maps and what they point to.
type Runtime struct {
	Options
	streams      streaming.Server
	capabilities spec.Capability // the most a container can get: the kubelet's own

	mu         sync.Mutex
	sandboxes  map[string]*sandbox   // by id
	containers map[string]*container // by id
}

// New finds the pods an earlier runtime left in Options.Dir and watches over them
// again. Serve must be running before the first exec.
func New(options Options) (*Runtime, error) {
	r := &Runtime{Options: options, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
	for _, dir := range []string{r.sandboxDir(""), r.containerDir("")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	var err error
	if r.capabilities, err = ownCapabilities(); err != nil {
		return nil, err
	}
	if err := r.adopt(); err != nil {
		return nil, fmt.Errorf("find earlier pods: %w", err)
	}
	config := streaming.DefaultConfig
	config.Addr = "127.0.0.1:0" // of the node; the kubelet is the only client
	r.streams, err = streaming.NewServer(config, streamer{r})
	return r, err
}

// ownCapabilities are those this process holds. A machine that is itself a
// container or a small VM may not have all.
func ownCapabilities() (spec.Capability, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("own capabilities: %w", err)
	}
	return spec.Capability(data[1].Permitted)<<32 | spec.Capability(data[0].Permitted), nil
}

// Serve answers exec, attach and port-forward until ctx ends.
func (r *Runtime) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { r.streams.Stop() })
	defer stop()
	err := r.streams.Start(true)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *Runtime) sandboxDir(id string) string   { return filepath.Join(r.Dir, "sandboxes", id) }
func (r *Runtime) containerDir(id string) string { return filepath.Join(r.Dir, "containers", id) }

func newID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// notFound is the error the kubelet takes for "gone already".
func notFound(kind, id string) error { return status.Errorf(codes.NotFound, "no %s %s", kind, id) }

// includes says whether labels satisfy a selector of exact values.
func includes(labels, selector map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// Version names this runtime in the Node's status.
func (r *Runtime) Version(context.Context, string) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: runtimeName, RuntimeVersion: runtimeVersion, RuntimeApiVersion: "v1"}, nil
}

// Status says whether pods can run: the network is ready when its configuration is there.
func (r *Runtime) Status(context.Context, bool) (*cri.StatusResponse, error) {
	network := &cri.RuntimeCondition{Type: cri.NetworkReady, Status: true}
	if err := r.Network.Ready(); err != nil {
		network = &cri.RuntimeCondition{Type: cri.NetworkReady, Reason: "NetworkPluginNotReady", Message: err.Error()}
	}
	return &cri.StatusResponse{
		Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{{Type: cri.RuntimeReady, Status: true}, network}},
		RuntimeHandlers: []*cri.RuntimeHandler{
			{Features: &cri.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}},
		},
		Features: &cri.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}, nil
}

// UpdateRuntimeConfig is told the pod CIDRs; the CNI configuration has them.
func (r *Runtime) UpdateRuntimeConfig(context.Context, *cri.RuntimeConfig) error { return nil }

// RuntimeConfig answers a question about cgroups, which the lab does not touch.
func (r *Runtime) RuntimeConfig(context.Context) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{Linux: &cri.LinuxRuntimeConfiguration{CgroupDriver: cri.CgroupDriver_CGROUPFS}}, nil
}

// Close leaves pods and their monitors running.
func (r *Runtime) Close(context.Context) error { return nil }
