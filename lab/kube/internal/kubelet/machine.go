package kubelet

import (
	"context"
	"os"
	"strings"

	cadvisorv1 "github.com/google/cadvisor/info/v1"
	cadvisorv2 "github.com/google/cadvisor/info/v2"
	"golang.org/x/sys/unix"

	"sallyport.test/lab/kube/internal/nodeconfig"
)

// What every node of the lab claims to have. The numbers only matter to the
// scheduler: nothing is limited to them, and the machine itself may have less.
const (
	nodeCores       = 8
	nodeMemoryBytes = 16 << 30
)

var nodeDisk = cadvisorv2.FsInfo{Capacity: 100 << 30, Available: 80 << 30, Usage: 20 << 30}

// machine answers the kubelet's questions about the node in place of cAdvisor,
// which reads cgroups.
type machine struct {
	info    cadvisorv1.MachineInfo
	version cadvisorv1.VersionInfo
}

func newMachine(config nodeconfig.Config) (machine, error) {
	bootID := config.BootID
	if bootID == "" {
		text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return machine{}, err
		}
		bootID = strings.TrimSpace(string(text))
	}
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return machine{}, err
	}
	return machine{
		info: cadvisorv1.MachineInfo{
			NumCores: nodeCores, MemoryCapacity: nodeMemoryBytes,
			MachineID: config.Node, SystemUUID: config.Node, BootID: bootID,
		},
		version: cadvisorv1.VersionInfo{
			KernelVersion: unix.ByteSliceToString(kernel.Release[:]), ContainerOsVersion: "lab node",
		},
	}, nil
}

func (machine) Start() error { return nil }

func (machine) ContainerInfoV2(string, cadvisorv2.RequestOptions) (map[string]cadvisorv2.ContainerInfo, error) {
	return map[string]cadvisorv2.ContainerInfo{}, nil
}

func (machine) GetRequestedContainersInfo(string, cadvisorv2.RequestOptions) (map[string]*cadvisorv1.ContainerInfo, error) {
	return map[string]*cadvisorv1.ContainerInfo{}, nil
}

func (m machine) MachineInfo() (*cadvisorv1.MachineInfo, error) { return &m.info, nil }
func (m machine) VersionInfo() (*cadvisorv1.VersionInfo, error) { return &m.version, nil }

func (machine) ImagesFsInfo(context.Context) (cadvisorv2.FsInfo, error)    { return nodeDisk, nil }
func (machine) RootFsInfo() (cadvisorv2.FsInfo, error)                     { return nodeDisk, nil }
func (machine) ContainerFsInfo(context.Context) (cadvisorv2.FsInfo, error) { return nodeDisk, nil }
func (machine) GetDirFsInfo(string) (cadvisorv2.FsInfo, error)             { return nodeDisk, nil }
