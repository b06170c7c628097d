package podruntime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"sallyport.test/lab/shim/control"
	"sallyport.test/lab/shim/spec"
)

// exitNotStarted is the exit code of a container whose program could not be
// started, as containerd gives it.
const exitNotStarted = 128

// container is one container of a pod, from its creation to its removal.
type container struct {
	containerRecord
	dir    string
	config *cri.ContainerConfig
}

// CreateContainer decides everything about a container and starts nothing.
func (r *Runtime) CreateContainer(_ context.Context, sandboxID string, config *cri.ContainerConfig, sandboxConfig *cri.PodSandboxConfig) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[sandboxID]
	if s == nil {
		return "", notFound("sandbox", sandboxID)
	}
	encoded, err := proto.Marshal(config)
	if err != nil {
		return "", err
	}
	id := newID()
	c := &container{
		containerRecord: containerRecord{
			ID: id, Sandbox: sandboxID, Config: encoded, Created: time.Now().UnixNano(),
			State: cri.ContainerState_CONTAINER_CREATED,
		},
		dir: r.containerDir(id), config: config,
	}
	if config.LogPath != "" {
		c.LogPath = filepath.Join(sandboxConfig.LogDirectory, config.LogPath)
	}
	image, err := r.Images.Resolve(config.GetImage().GetUserSpecifiedImage(), config.Command, config.Args)
	if err != nil {
		return "", err
	}
	place, err := r.place(s, c)
	if err != nil {
		return "", err
	}
	if c.Spec, err = containerSpec(config, image, place); err != nil {
		return "", err
	}
	if err := os.MkdirAll(c.Spec.Scratch, 0o755); err != nil {
		return "", err
	}
	if err := writeRecord(c.dir, c.containerRecord); err != nil {
		return "", err
	}
	r.containers[id] = c
	return id, nil
}

// place is where a container lives: in its sandbox, and perhaps beside the
// processes of another container (an ephemeral container with a target).
func (r *Runtime) place(s *sandbox, c *container) (place, error) {
	p := place{
		scratch: filepath.Join(c.dir, "scratch"), podDir: r.sandboxDir(s.ID), binds: r.Binds,
		hostname: s.config.Hostname, sandbox: s.Process.namespace, all: r.capabilities,
	}
	if s.onNode() {
		p.hostname = r.Node
	}
	options := c.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if options.GetPid() == cri.NamespaceMode_TARGET {
		target := r.containers[options.TargetId]
		if target == nil || target.State != cri.ContainerState_CONTAINER_RUNNING {
			return place{}, fmt.Errorf("the target container %s does not run", options.TargetId)
		}
		p.targetPID = target.Process.namespace("pid")
	}
	return p, nil
}

// StartContainer starts the program. If it cannot be started, the container ends
// at once with the reason.
func (r *Runtime) StartContainer(_ context.Context, id string) error {
	r.mu.Lock()
	c := r.containers[id]
	r.mu.Unlock()
	if c == nil {
		return notFound("container", id)
	}
	p, err := r.startContainer(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Started = time.Now().UnixNano()
	if err != nil {
		c.State, c.Finished = cri.ContainerState_CONTAINER_EXITED, c.Started
		c.ExitCode, c.Reason, c.Message = exitNotStarted, "StartError", err.Error()
		return errors.Join(err, writeRecord(c.dir, c.containerRecord))
	}
	c.State, c.Process = cri.ContainerState_CONTAINER_RUNNING, p
	if err := writeRecord(c.dir, c.containerRecord); err != nil {
		return err
	}
	p.watch(func() { r.ended(c) })
	return nil
}

func (r *Runtime) startContainer(c *container) (*supervised, error) {
	for _, m := range c.config.Mounts {
		// A hostPath without a type may be missing; then the runtime makes it.
		if _, err := os.Stat(m.HostPath); errors.Is(err, fs.ErrNotExist) {
			if err := os.MkdirAll(m.HostPath, 0o755); err != nil {
				return nil, err
			}
		}
	}
	return r.supervise(spec.Monitor{Dir: c.dir, Log: c.LogPath, Stdin: c.config.Stdin, StdinOnce: c.config.StdinOnce, Container: &c.Spec})
}

// ended writes down how a container ended.
func (r *Runtime) ended(c *container) {
	result := c.Process.result()
	r.mu.Lock()
	defer r.mu.Unlock()
	c.State, c.Finished, c.ExitCode = cri.ContainerState_CONTAINER_EXITED, result.FinishedAt, int32(result.ExitCode)
	c.Reason = "Completed"
	if result.ExitCode != 0 {
		c.Reason = "Error"
	}
	if err := writeRecord(c.dir, c.containerRecord); err != nil {
		fmt.Fprintf(os.Stderr, "container %s: %v\n", c.ID, err)
	}
}

// find is a container by id, or a NotFound error.
func (r *Runtime) find(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, notFound("container", id)
}

// running is the process of a container that runs.
func (r *Runtime) running(id string) (*container, error) {
	c, err := r.find(id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.State != cri.ContainerState_CONTAINER_RUNNING {
		return nil, fmt.Errorf("container %s does not run", id)
	}
	return c, nil
}

// StopContainer sends the stop signal, waits for timeout seconds and kills. One
// that has ended, or is gone, is fine.
func (r *Runtime) StopContainer(_ context.Context, id string, timeout int64) error {
	c, err := r.running(id)
	if err != nil {
		return nil
	}
	signal := unix.SIGTERM
	if wanted := unix.SignalNum(c.config.StopSignal.String()); wanted != 0 {
		signal = wanted
	}
	return c.Process.stop(signal, time.Duration(timeout)*time.Second)
}

// RemoveContainer forgets a container; it is killed if it runs.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	if err := r.StopContainer(ctx, id, 0); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, id)
	return removeDir(r.containerDir(id))
}

// ReopenContainerLog starts a new log file after the kubelet moved the old one.
func (r *Runtime) ReopenContainerLog(_ context.Context, id string) error {
	c, err := r.running(id)
	if err != nil {
		return err
	}
	return control.Call(c.dir, control.Request{Op: control.OpReopen})
}

// ContainerStatus describes one container.
func (r *Runtime) ContainerStatus(_ context.Context, id string, _ bool) (*cri.ContainerStatusResponse, error) {
	c, err := r.find(id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	identity := c.Spec.Identity
	user := &cri.LinuxContainerUser{Uid: int64(identity.UID), Gid: int64(identity.GID)}
	for _, group := range identity.Groups {
		user.SupplementalGroups = append(user.SupplementalGroups, int64(group))
	}
	return &cri.ContainerStatusResponse{Status: &cri.ContainerStatus{
		Id: id, Metadata: c.config.Metadata, Labels: c.config.Labels, Annotations: c.config.Annotations,
		Image: c.config.Image, ImageRef: c.config.GetImage().GetImage(), ImageId: c.config.GetImage().GetImage(),
		State: c.State, CreatedAt: c.Created, StartedAt: c.Started, FinishedAt: c.Finished,
		ExitCode: c.ExitCode, Reason: c.Reason, Message: c.Message,
		Mounts: c.config.Mounts, LogPath: c.LogPath, StopSignal: c.config.StopSignal,
		User: &cri.ContainerUser{Linux: user},
	}}, nil
}

// ListContainers lists the containers that pass the filter.
func (r *Runtime) ListContainers(_ context.Context, filter *cri.ContainerFilter) ([]*cri.Container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*cri.Container
	for _, c := range r.containers {
		if filter.GetId() != "" && filter.Id != c.ID || filter.GetPodSandboxId() != "" && filter.PodSandboxId != c.Sandbox ||
			filter.GetState() != nil && filter.State.State != c.State || !includes(c.config.Labels, filter.GetLabelSelector()) {
			continue
		}
		list = append(list, &cri.Container{
			Id: c.ID, PodSandboxId: c.Sandbox, Metadata: c.config.Metadata, Labels: c.config.Labels, Annotations: c.config.Annotations,
			Image: c.config.Image, ImageRef: c.config.GetImage().GetImage(), ImageId: c.config.GetImage().GetImage(),
			State: c.State, CreatedAt: c.Created,
		})
	}
	return list, nil
}
