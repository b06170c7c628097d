package podruntime

import (
	"errors"
	"fmt"
	"maps"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"sallyport.test/lab/kube/internal/images"
	"sallyport.test/lab/shim/spec"
)

// This file turns what the kubelet asks for into specs of the shim. It is pure
// but for the machine's list of users: everything else about the world comes in as a place. What the lab cannot do is
// refused here, so that a pod never runs with less than its manifest says. The
// exceptions are limits (no cgroups) and the RuntimeDefault profiles of seccomp
// and AppArmor, which are accepted and not applied.

// defaultPath is the PATH of a container whose image and manifest set none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// place is where a container will live.
type place struct {
	scratch   string
	podDir    string // files that the pod's containers share
	binds     []string
	hostname  string
	all       spec.Capability          // what a privileged container gets
	sandbox   func(kind string) string // path of a namespace of the sandbox
	targetPID string                   // pid namespace of the target container, if there is one
}

func namespaces(config *cri.PodSandboxConfig) *cri.NamespaceOption {
	return config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

func checkSandbox(config *cri.PodSandboxConfig) error {
	if namespaces(config).GetUsernsOptions().GetMode() == cri.NamespaceMode_POD {
		return errors.New("hostUsers: false is not done in the lab")
	}
	return nil
}

func sandboxSpec(hostname string, config *cri.PodSandboxConfig) *spec.Sandbox {
	options := namespaces(config)
	return &spec.Sandbox{
		Hostname: hostname,
		Sysctls:  config.GetLinux().GetSysctls(),
		OwnNet:   options.GetNetwork() != cri.NamespaceMode_NODE,
		OwnIPC:   options.GetIpc() != cri.NamespaceMode_NODE,
		OwnPID:   options.GetPid() == cri.NamespaceMode_POD,
	}
}

func containerSpec(config *cri.ContainerConfig, image images.Entry, p place) (spec.Container, error) {
	security := config.GetLinux().GetSecurityContext()
	if security == nil {
		security = &cri.LinuxContainerSecurityContext{}
	}
	if err := checkContainer(config, security); err != nil {
		return spec.Container{}, err
	}
	identity, err := identityOf(security, p.all)
	if err != nil {
		return spec.Container{}, err
	}
	mounts, err := mountsOf(config.Mounts, p)
	if err != nil {
		return spec.Container{}, err
	}
	c := spec.Container{
		Process: spec.Process{
			Args: slices.Concat(image.Command, image.Args), Env: environment(config, image, identity, p.hostname),
			Cwd: config.WorkingDir, Identity: identity, Terminal: config.Tty,
		},
		Scratch: p.scratch, Binds: slices.Concat(p.binds, image.Binds), Mounts: mounts,
		SharedMemory: filepath.Join(p.podDir, "shm"), Privileged: security.Privileged,
		ReadOnlyRoot: security.ReadonlyRootfs,
	}
	// The kubelet sends the lists for privileged containers too; runtimes leave them out.
	if !security.Privileged {
		c.MaskedPaths, c.ReadOnlyPaths = security.MaskedPaths, security.ReadonlyPaths
	}
	if c.Cwd == "" {
		c.Cwd = "/"
	}
	return c, join(&c, security.NamespaceOptions, p)
}

// join chooses the namespaces. The sandbox has always a host name of its own, so
// that a privileged pod cannot rename the machine.
func join(c *spec.Container, options *cri.NamespaceOption, p place) error {
	c.Namespaces.UTS = p.sandbox("uts")
	if options.GetNetwork() != cri.NamespaceMode_NODE {
		c.Namespaces.Net = p.sandbox("net")
	}
	if options.GetIpc() == cri.NamespaceMode_NODE {
		c.SharedMemory = "/dev/shm"
	} else {
		c.Namespaces.IPC = p.sandbox("ipc")
	}
	switch mode := options.GetPid(); mode {
	case cri.NamespaceMode_CONTAINER:
	case cri.NamespaceMode_POD:
		c.PID = p.sandbox("pid")
	case cri.NamespaceMode_NODE:
		c.PID = spec.HostPID
	case cri.NamespaceMode_TARGET:
		c.PID = p.targetPID
	default:
		return fmt.Errorf("unknown pid namespace mode %s", mode)
	}
	return nil
}

// checkContainer refuses what the lab does not do.
func checkContainer(config *cri.ContainerConfig, security *cri.LinuxContainerSecurityContext) error {
	const local = cri.SecurityProfile_Localhost
	switch {
	case security.GetSeccomp().GetProfileType() == local:
		return errors.New("seccompProfile Localhost is not done in the lab")
	case security.GetApparmor().GetProfileType() == local:
		return errors.New("appArmorProfile Localhost is not done in the lab")
	case len(config.Devices) > 0 || len(config.CDIDevices) > 0:
		return errors.New("devices are not done in the lab; a privileged container sees the machine's")
	case security.RunAsUsername != "":
		return errors.New("a user by name is not done in the lab; give runAsUser")
	}
	return nil
}

// identityOf is who the container runs as. The machine's user database is not an
// image's, so nobody has further groups from it, and the default group is 0.
func identityOf(security *cri.LinuxContainerSecurityContext, all spec.Capability) (spec.Identity, error) {
	identity := spec.Identity{
		UID: uint32(security.GetRunAsUser().GetValue()), GID: uint32(security.GetRunAsGroup().GetValue()),
		NoNewPrivileges: security.NoNewPrivs, Capabilities: all,
	}
	identity.Groups = []uint32{identity.GID}
	for _, group := range security.SupplementalGroups {
		if !slices.Contains(identity.Groups, uint32(group)) {
			identity.Groups = append(identity.Groups, uint32(group))
		}
	}
	if security.Privileged {
		return identity, nil
	}
	wanted := security.GetCapabilities()
	if len(wanted.GetAddAmbientCapabilities()) > 0 {
		return spec.Identity{}, errors.New("ambient capabilities are not done in the lab")
	}
	var err error
	identity.Capabilities, err = spec.Capabilities(all, wanted.GetAddCapabilities(), wanted.GetDropCapabilities())
	return identity, err
}

// mountsOf are the kubelet's mounts and the pod's files, unless the kubelet
// brings its own.
func mountsOf(asked []*cri.Mount, p place) ([]spec.Mount, error) {
	var mounts []spec.Mount
	taken := map[string]bool{}
	for _, m := range asked {
		switch {
		case m.Propagation == cri.MountPropagation_PROPAGATION_BIDIRECTIONAL:
			return nil, fmt.Errorf("%s: mountPropagation Bidirectional is not done in the lab", m.ContainerPath)
		case m.Image != nil:
			return nil, fmt.Errorf("%s: image volumes are not done in the lab", m.ContainerPath)
		case len(m.UidMappings)+len(m.GidMappings) > 0:
			return nil, fmt.Errorf("%s: user namespaces are not done in the lab", m.ContainerPath)
		}
		taken[filepath.Clean(m.ContainerPath)] = true
		mounts = append(mounts, spec.Mount{
			Source: m.HostPath, Target: m.ContainerPath, ReadOnly: m.Readonly, Recursive: m.RecursiveReadOnly,
			Follow: m.Propagation == cri.MountPropagation_PROPAGATION_HOST_TO_CONTAINER,
		})
	}
	for _, name := range []string{"resolv.conf", "hostname"} {
		if target := filepath.Join("/etc", name); !taken[target] {
			mounts = append(mounts, spec.Mount{Source: filepath.Join(p.podDir, name), Target: target})
		}
	}
	return mounts, nil
}

// homeOf is the home folder of a user in the containers' root, which is the machine's.
func homeOf(uid uint32) string {
	if known, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
		return known.HomeDir
	}
	return "/"
}

// environment is the container's, sorted by name. The manifest wins over the
// image, the image over the defaults.
func environment(config *cri.ContainerConfig, image images.Entry, identity spec.Identity, hostname string) []string {
	env := map[string]string{"PATH": defaultPath, "HOSTNAME": hostname, "HOME": homeOf(identity.UID)}
	if config.Tty {
		env["TERM"] = "xterm"
	}
	maps.Copy(env, image.Env)
	for _, pair := range config.Envs {
		env[pair.Key] = string(pair.Value)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
