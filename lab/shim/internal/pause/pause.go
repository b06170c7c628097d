// Package pause is the process that holds a pod's namespaces: it prepares them
// and then does nothing until it is told to end.
package pause

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport.test/lab/shim/spec"
)

// Prepare sets up the namespaces the calling process was born in.
func Prepare(s *spec.Sandbox) error {
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("host name %q: %w", s.Hostname, err)
	}
	if s.OwnNet {
		if err := prepareNetwork(); err != nil {
			return err
		}
	}
	names := make([]string, 0, len(s.Sysctls))
	for name := range s.Sysctls {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := setSysctl(name, s.Sysctls[name]); err != nil {
			return err
		}
	}
	return nil
}

// prepareNetwork brings lo up and turns duplicate address detection off: with it
// the CNI plugin waits two seconds for every pod, and the addresses of one node's
// pool cannot collide.
func prepareNetwork() error {
	for _, scope := range []string{"all", "default"} {
		err := setSysctl("net.ipv6.conf."+scope+".accept_dad", "0")
		if err != nil && !os.IsNotExist(err) { // a machine without IPv6
			return err
		}
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}

// setSysctl writes a kernel setting of the calling process's namespaces. In a name
// with a slash the slash separates and the dot is literal, as in sysctl(8).
func setSysctl(name, value string) error {
	path := name
	if !strings.Contains(name, "/") {
		path = strings.ReplaceAll(name, ".", "/")
	}
	if slices.Contains(strings.Split(path, "/"), "..") {
		return fmt.Errorf("sysctl %s: not a setting", name)
	}
	return os.WriteFile(filepath.Join("/proc/sys", path), []byte(value), 0)
}

// Hold returns at SIGTERM or SIGINT. Until then it reaps: in a pod that shares its
// process namespace this process is everyone's parent in the end.
func Hold() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGCHLD)
	for s := range signals {
		if s != unix.SIGCHLD {
			return
		}
		reap()
	}
}

func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if pid <= 0 && err != unix.EINTR {
			return
		}
	}
}
