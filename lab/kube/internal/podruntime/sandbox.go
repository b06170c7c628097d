package podruntime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"sallyport.test/lab/kube/internal/cni"
	"sallyport.test/lab/shim/spec"
)

// sandboxState says how far a sandbox is. A sandbox is ready for the kubelet if
// it is wired and its process lives.
type sandboxState string

const (
	sandboxStarting sandboxState = "starting" // has a process, but perhaps no network
	sandboxWired    sandboxState = "wired"
	sandboxStopped  sandboxState = "stopped" // nothing of it is left but files
)

// sandbox is a pod's namespaces and the process that holds them.
type sandbox struct {
	sandboxRecord
	config *cri.PodSandboxConfig
}

// RunPodSandbox makes a pod's namespaces and wires them. The runtime class is not
// looked at: there is only one kind of sandbox.
func (r *Runtime) RunPodSandbox(ctx context.Context, config *cri.PodSandboxConfig, _ string) (string, error) {
	if err := checkSandbox(config); err != nil {
		return "", err
	}
	encoded, err := proto.Marshal(config)
	if err != nil {
		return "", err
	}
	s := &sandbox{
		sandboxRecord: sandboxRecord{ID: newID(), Config: encoded, Created: time.Now().UnixNano(), State: sandboxStarting},
		config:        config,
	}
	if err := r.runSandbox(ctx, s); err != nil {
		// The kubelet will not ask again for an id it never got.
		return "", errors.Join(err, r.stopSandbox(context.WithoutCancel(ctx), s), removeDir(r.sandboxDir(s.ID)))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandboxes[s.ID] = s
	return s.ID, nil
}

func (r *Runtime) runSandbox(ctx context.Context, s *sandbox) error {
	dir := r.sandboxDir(s.ID)
	hostname := s.config.Hostname
	if s.onNode() {
		hostname = r.Node
	}
	if err := writePodFiles(dir, hostname, s.config); err != nil {
		return err
	}
	var err error
	s.Process, err = r.supervise(spec.Monitor{Dir: dir, Sandbox: sandboxSpec(hostname, s.config)})
	if err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	s.Process.watch(func() {})
	// On disk before it is wired: a kubelet that dies now must find it to undo it.
	if err := writeRecord(dir, s.sandboxRecord); err != nil {
		return err
	}
	if !s.onNode() {
		addresses, err := r.Network.Add(ctx, s.attachment())
		if err != nil {
			return err
		}
		for _, address := range addresses {
			s.IPs = append(s.IPs, address.String())
		}
	}
	s.State = sandboxWired
	return writeRecord(dir, s.sandboxRecord)
}

// writePodFiles makes the files that all containers of the pod share.
func writePodFiles(dir, hostname string, config *cri.PodSandboxConfig) error {
	shm := filepath.Join(dir, "shm")
	if err := os.MkdirAll(shm, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("shm", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777,size=64m"); err != nil {
		return fmt.Errorf("shared memory: %w", err)
	}
	if config.LogDirectory != "" {
		if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "hostname"), []byte(hostname+"\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "resolv.conf"), resolvConf(config.DnsConfig), 0o644)
}

func resolvConf(dns *cri.DNSConfig) []byte {
	var text strings.Builder
	for _, server := range dns.GetServers() {
		fmt.Fprintf(&text, "nameserver %s\n", server)
	}
	if searches := dns.GetSearches(); len(searches) > 0 {
		fmt.Fprintf(&text, "search %s\n", strings.Join(searches, " "))
	}
	if options := dns.GetOptions(); len(options) > 0 {
		fmt.Fprintf(&text, "options %s\n", strings.Join(options, " "))
	}
	return []byte(text.String())
}

// onNode says that the pod lives in the node's network namespace.
func (s *sandbox) onNode() bool { return namespaces(s.config).GetNetwork() == cri.NamespaceMode_NODE }

func (s *sandbox) attachment() cni.Attachment {
	a := cni.Attachment{ID: s.ID}
	if s.Process.alive() {
		a.NetNS = s.Process.namespace("net")
	}
	for _, p := range s.config.PortMappings {
		if p.HostPort > 0 {
			a.Ports = append(a.Ports, cni.PortMapping{HostPort: p.HostPort, ContainerPort: p.ContainerPort, Protocol: strings.ToLower(p.Protocol.String()), HostIP: p.HostIp})
		}
	}
	return a
}

func (s *sandbox) criState() cri.PodSandboxState {
	if s.State == sandboxWired && s.Process.alive() {
		return cri.PodSandboxState_SANDBOX_READY
	}
	return cri.PodSandboxState_SANDBOX_NOTREADY
}

// StopPodSandbox ends the pod's containers and takes its network away. It may be
// called again, and for a sandbox that is gone.
func (r *Runtime) StopPodSandbox(ctx context.Context, id string) error {
	r.mu.Lock()
	s := r.sandboxes[id]
	var inside []*container
	for _, c := range r.containers {
		if c.Sandbox == id && c.State == cri.ContainerState_CONTAINER_RUNNING {
			inside = append(inside, c)
		}
	}
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	for _, c := range inside {
		if err := c.Process.stop(unix.SIGKILL, 0); err != nil {
			return err
		}
	}
	return r.stopSandbox(ctx, s)
}

func (r *Runtime) stopSandbox(ctx context.Context, s *sandbox) error {
	r.mu.Lock()
	over := s.State == sandboxStopped || s.Process == nil
	r.mu.Unlock()
	if over {
		return nil
	}
	if !s.onNode() {
		if err := r.Network.Delete(ctx, s.attachment()); err != nil {
			return err
		}
	}
	if err := s.Process.stop(unix.SIGKILL, 0); err != nil {
		return err
	}
	if err := unmountShared(r.sandboxDir(s.ID)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.State = sandboxStopped
	return writeRecord(r.sandboxDir(s.ID), s.sandboxRecord)
}

// RemovePodSandbox forgets a pod and its containers; they are stopped if need be.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, c := range r.containers {
		if c.Sandbox == id {
			if err := removeDir(c.dir); err != nil {
				return err
			}
			delete(r.containers, key)
		}
	}
	delete(r.sandboxes, id)
	return removeDir(r.sandboxDir(id))
}

// removeDir removes the folder of a sandbox or container and what is mounted in it.
func removeDir(dir string) error {
	if err := unmountShared(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// unmountShared takes the pod's shared memory away; twice is fine.
func unmountShared(dir string) error {
	err := unix.Unmount(filepath.Join(dir, "shm"), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // not mounted, not there
		return fmt.Errorf("unmount shared memory: %w", err)
	}
	return nil
}

// PodSandboxStatus describes one sandbox.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*cri.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[id]
	if s == nil {
		return nil, notFound("sandbox", id)
	}
	network := &cri.PodSandboxNetworkStatus{}
	for i, ip := range s.IPs {
		if i == 0 {
			network.Ip = ip
		} else {
			network.AdditionalIps = append(network.AdditionalIps, &cri.PodIP{Ip: ip})
		}
	}
	return &cri.PodSandboxStatusResponse{Status: &cri.PodSandboxStatus{
		Id: id, Metadata: s.config.Metadata, State: s.criState(), CreatedAt: s.Created, Network: network,
		Labels: s.config.Labels, Annotations: s.config.Annotations,
		Linux: &cri.LinuxPodSandboxStatus{Namespaces: &cri.Namespace{Options: namespaces(s.config)}},
	}}, nil
}

// ListPodSandbox lists the sandboxes that pass the filter.
func (r *Runtime) ListPodSandbox(_ context.Context, filter *cri.PodSandboxFilter) ([]*cri.PodSandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*cri.PodSandbox
	for _, s := range r.sandboxes {
		state := s.criState()
		if filter.GetId() != "" && filter.Id != s.ID || filter.GetState() != nil && filter.State.State != state || !includes(s.config.Labels, filter.GetLabelSelector()) {
			continue
		}
		list = append(list, &cri.PodSandbox{Id: s.ID, Metadata: s.config.Metadata, State: state, CreatedAt: s.Created, Labels: s.config.Labels, Annotations: s.config.Annotations})
	}
	return list, nil
}
