package kubelet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"sallyport.test/lab/kube/internal/nodeconfig"
	"sallyport.test/lab/kube/internal/podruntime"
)

// The kubelet mounts a file system for every token, secret and shared memory. They
// live in a mount namespace of its own: the machine never sees them and they are
// gone with the last process. A kubelet that comes back enters the namespace of
// the pods it left, because their volumes are mounted only there.

// enterMounts becomes args in the right mount namespace. It only returns on an
// error. A Go program has many threads and cannot move itself, so the shim does it.
func enterMounts(config nodeconfig.Config, args []string) error {
	which := "new"
	if pid, found := podruntime.FindLiving(runtimeDir(config)); found {
		which = fmt.Sprintf("/proc/%d/ns/mnt", pid)
	}
	self, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	if self, err = filepath.Abs(self); err != nil {
		return err
	}
	command := append([]string{"labshim", "inns", "-mount", which, "--", self}, args[1:]...)
	return fmt.Errorf("start %s: %w", config.Shim, syscall.Exec(config.Shim, command, os.Environ()))
}
