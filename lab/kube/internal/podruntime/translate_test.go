package podruntime

import (
	"slices"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"sallyport.test/lab/kube/internal/images"
	"sallyport.test/lab/shim/spec"
)

const most = spec.AllCapabilities &^ 1

var here = place{
	scratch: "/c/scratch", podDir: "/p", hostname: "web-0", targetPID: "target's pid", all: most,
	sandbox: func(kind string) string { return "sandbox's " + kind },
}

var program = images.Entry{Command: []string{"program"}, Env: map[string]string{"A": "image", "B": "image"}}

// translate is containerSpec of a container with this security context.
func translate(t *testing.T, security *cri.LinuxContainerSecurityContext) spec.Container {
	t.Helper()
	c, err := containerSpec(&cri.ContainerConfig{Linux: &cri.LinuxContainerConfig{SecurityContext: security}}, program, here)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNamespaces(t *testing.T) {
	const pod, own, node, target = cri.NamespaceMode_POD, cri.NamespaceMode_CONTAINER, cri.NamespaceMode_NODE, cri.NamespaceMode_TARGET
	cases := []struct {
		name    string
		options *cri.NamespaceOption
		want    spec.Namespaces
		pid     string
		shm     string
	}{
		{"ordinary pod", &cri.NamespaceOption{Pid: own}, spec.Namespaces{Net: "sandbox's net", IPC: "sandbox's ipc", UTS: "sandbox's uts"}, "", "/p/shm"},
		{"hostNetwork", &cri.NamespaceOption{Network: node, Pid: own}, spec.Namespaces{IPC: "sandbox's ipc", UTS: "sandbox's uts"}, "", "/p/shm"},
		{"hostIPC", &cri.NamespaceOption{Ipc: node, Pid: own}, spec.Namespaces{Net: "sandbox's net", UTS: "sandbox's uts"}, "", "/dev/shm"},
		{"hostPID", &cri.NamespaceOption{Pid: node}, spec.Namespaces{Net: "sandbox's net", IPC: "sandbox's ipc", UTS: "sandbox's uts"}, spec.HostPID, "/p/shm"},
		{"shareProcessNamespace", &cri.NamespaceOption{Pid: pod}, spec.Namespaces{Net: "sandbox's net", IPC: "sandbox's ipc", UTS: "sandbox's uts"}, "sandbox's pid", "/p/shm"},
		{"ephemeral with a target", &cri.NamespaceOption{Pid: target}, spec.Namespaces{Net: "sandbox's net", IPC: "sandbox's ipc", UTS: "sandbox's uts"}, "target's pid", "/p/shm"},
	}
	for _, c := range cases {
		got := translate(t, &cri.LinuxContainerSecurityContext{NamespaceOptions: c.options})
		if got.Namespaces != c.want || got.PID != c.pid || got.SharedMemory != c.shm {
			t.Errorf("%s: %+v, pid %q, %s", c.name, got.Namespaces, got.PID, got.SharedMemory)
		}
	}
}

func TestIdentity(t *testing.T) {
	got := translate(t, &cri.LinuxContainerSecurityContext{
		RunAsUser: &cri.Int64Value{Value: 1000}, RunAsGroup: &cri.Int64Value{Value: 2000},
		SupplementalGroups: []int64{3000, 2000}, NoNewPrivs: true,
		Capabilities: &cri.Capability{AddCapabilities: []string{"NET_ADMIN"}, DropCapabilities: []string{"ALL"}},
	}).Identity
	if got.UID != 1000 || got.GID != 2000 || !slices.Equal(got.Groups, []uint32{2000, 3000}) || !got.NoNewPrivileges || got.Capabilities != 1<<12 {
		t.Errorf("got %+v", got)
	}
	if all := translate(t, &cri.LinuxContainerSecurityContext{Privileged: true}).Identity; all.Capabilities != most || all.UID != 0 {
		t.Errorf("privileged: %+v", all)
	}
}

func TestPrivilegedSeesKernelSettings(t *testing.T) {
	security := &cri.LinuxContainerSecurityContext{MaskedPaths: []string{"/proc/kcore"}, ReadonlyPaths: []string{"/proc/sys"}}
	if c := translate(t, security); len(c.MaskedPaths) != 1 || len(c.ReadOnlyPaths) != 1 {
		t.Errorf("ordinary: %v, %v", c.MaskedPaths, c.ReadOnlyPaths)
	}
	security.Privileged = true
	if c := translate(t, security); len(c.MaskedPaths)+len(c.ReadOnlyPaths) != 0 {
		t.Errorf("privileged: %v, %v", c.MaskedPaths, c.ReadOnlyPaths)
	}
}

func TestEnvironment(t *testing.T) {
	config := &cri.ContainerConfig{Tty: true, Envs: []*cri.KeyValue{{Key: "B", Value: []byte("manifest")}, {Key: "PATH", Value: []byte("/bin")}}}
	c, err := containerSpec(config, program, here)
	want := []string{"A=image", "B=manifest", "HOME=" + homeOf(0), "HOSTNAME=web-0", "PATH=/bin", "TERM=xterm"}
	if err != nil || !slices.Equal(c.Env, want) {
		t.Errorf("got %q, %v", c.Env, err)
	}
}

func TestPodFilesGiveWayToTheKubelets(t *testing.T) {
	config := &cri.ContainerConfig{Mounts: []*cri.Mount{{HostPath: "/k/resolv", ContainerPath: "/etc//resolv.conf", Readonly: true}}}
	c, err := containerSpec(config, program, here)
	want := []spec.Mount{
		{Source: "/k/resolv", Target: "/etc//resolv.conf", ReadOnly: true},
		{Source: "/p/hostname", Target: "/etc/hostname"},
	}
	if err != nil || !slices.Equal(c.Mounts, want) {
		t.Errorf("got %+v, %v", c.Mounts, err)
	}
}

// What the lab cannot do must fail with a sentence, never run with less.
func TestRefusals(t *testing.T) {
	local := &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Localhost}
	security := func(s *cri.LinuxContainerSecurityContext) *cri.ContainerConfig {
		return &cri.ContainerConfig{Linux: &cri.LinuxContainerConfig{SecurityContext: s}}
	}
	mount := func(m *cri.Mount) *cri.ContainerConfig { return &cri.ContainerConfig{Mounts: []*cri.Mount{m}} }
	for want, config := range map[string]*cri.ContainerConfig{
		"seccompProfile":       security(&cri.LinuxContainerSecurityContext{Seccomp: local}),
		"appArmorProfile":      security(&cri.LinuxContainerSecurityContext{Apparmor: local}),
		"runAsUser":            security(&cri.LinuxContainerSecurityContext{RunAsUsername: "www"}),
		"unknown capability":   security(&cri.LinuxContainerSecurityContext{Capabilities: &cri.Capability{AddCapabilities: []string{"X"}}}),
		"ambient capabilities": security(&cri.LinuxContainerSecurityContext{Capabilities: &cri.Capability{AddAmbientCapabilities: []string{"KILL"}}}),
		"devices":              {Devices: []*cri.Device{{}}},
		"Bidirectional":        mount(&cri.Mount{Propagation: cri.MountPropagation_PROPAGATION_BIDIRECTIONAL}),
		"image volumes":        mount(&cri.Mount{Image: &cri.ImageSpec{}}),
		"user namespaces":      mount(&cri.Mount{UidMappings: []*cri.IDMapping{{}}}),
	} {
		if _, err := containerSpec(config, program, here); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	users := &cri.PodSandboxConfig{Linux: &cri.LinuxPodSandboxConfig{SecurityContext: &cri.LinuxSandboxSecurityContext{
		NamespaceOptions: &cri.NamespaceOption{UsernsOptions: &cri.UserNamespace{Mode: cri.NamespaceMode_POD}},
	}}}
	if err := checkSandbox(users); err == nil {
		t.Error("hostUsers: false was accepted")
	}
}
