package spec

import (
	"fmt"
	"strings"
)

// Capability is a set of Linux capabilities; bit N is capability number N of
// capabilities(7).
type Capability uint64

// capabilityNames is in the order of the kernel's numbers (linux/capability.h, kernel 6.18).
var capabilityNames = [...]string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
	"SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
	"IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
	"SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD",
	"LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
	"WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
}

// AllCapabilities holds every capability this package knows.
const AllCapabilities = Capability(1)<<len(capabilityNames) - 1

// defaultCapabilities are those a container has if its manifest says nothing;
// the same fourteen that containerd and CRI-O with default settings give.
var defaultCapabilities = [...]string{
	"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID",
	"SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
}

// Capabilities is the set after a manifest's add and drop lists. A name may carry
// CAP_ and any case; ALL stands for all, the most the node can give. As in a
// container runtime, a capability that is both added and dropped by name is
// dropped, and ALL gives way to single names. An unknown name is an error.
func Capabilities(all Capability, add, drop []string) (Capability, error) {
	var set Capability
	for _, name := range defaultCapabilities {
		one, err := capability(name)
		if err != nil {
			return 0, err
		}
		set |= one
	}
	added, addAll, err := names(add)
	if err != nil {
		return 0, fmt.Errorf("capabilities.add: %w", err)
	}
	dropped, dropAll, err := names(drop)
	if err != nil {
		return 0, fmt.Errorf("capabilities.drop: %w", err)
	}
	if addAll {
		set = all
	}
	if dropAll {
		set = 0
	}
	return (set | added) &^ dropped, nil
}

// names is the union of the named capabilities, and whether ALL was among them.
func names(list []string) (set Capability, all bool, err error) {
	for _, name := range list {
		if strings.EqualFold(name, "ALL") {
			all = true
			continue
		}
		one, err := capability(name)
		if err != nil {
			return 0, false, err
		}
		set |= one
	}
	return set, all, nil
}

func capability(name string) (Capability, error) {
	short := strings.TrimPrefix(strings.ToUpper(name), "CAP_")
	for number, known := range capabilityNames {
		if known == short {
			return 1 << number, nil
		}
	}
	return 0, fmt.Errorf("unknown capability %q", name)
}

// Has says whether capability number n is in the set.
func (c Capability) Has(n int) bool { return c&(1<<n) != 0 }
