// Package namespace moves the calling thread into other namespaces. A caller
// locks its goroutine to the thread first and never unlocks it: a thread in a
// foreign namespace must not serve anything else.
package namespace

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Enter joins the namespace at path, whichever type it is of. An empty path is
// no change. A pid namespace takes effect for children only (setns(2)).
func Enter(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), 0); err != nil {
		return fmt.Errorf("enter namespace %s: %w", path, err)
	}
	return nil
}

// EnterMount joins the mount namespace at path. The thread gets its own root and
// working directory first: the kernel refuses while threads share them.
func EnterMount(path string) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("own root directory: %w", err)
	}
	return Enter(path)
}

// NewMount gives the thread a mount namespace whose changes the machine does not
// see, while what the machine unmounts goes here too: a namespace that is deleted
// must not live on in a mount of ours. Inside, mounts are shared again, so that containers made from it can follow
// mounts that come later (HostToContainer).
func NewMount() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("new mount namespace: %w", err)
	}
	for _, mode := range []uintptr{unix.MS_SLAVE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", mode|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount propagation: %w", err)
		}
	}
	return nil
}
