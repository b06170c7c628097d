// Package identity makes the calling thread what a container's process must be:
// user, groups, capabilities.
package identity

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"sallyport.test/lab/shim/spec"
)

// maxCapability is the highest number the kernel's interface can name.
const maxCapability = 63

// Apply changes the calling thread only, and for good. The caller has locked the
// goroutine to its thread and then execs or forks from it: both keep the thread's
// identity. Go's own Setuid would change all threads, which is more than needed.
func Apply(id spec.Identity) error {
	if err := limitCapabilities(id.Capabilities); err != nil {
		return err
	}
	if err := setUser(id); err != nil {
		return err
	}
	if err := holdCapabilities(id); err != nil {
		return err
	}
	if id.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no new privileges: %w", err)
		}
	}
	return nil
}

// limitCapabilities takes everything outside the set from the bounding set, so
// that no later exec, not even of a setuid program, can bring it back.
func limitCapabilities(set spec.Capability) error {
	for n := range maxCapability + 1 {
		if set.Has(n) {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // beyond the last capability of this kernel
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", n, err)
		}
	}
	return nil
}

func setUser(id spec.Identity) error {
	var first unsafe.Pointer
	if len(id.Groups) > 0 {
		first = unsafe.Pointer(&id.Groups[0])
	}
	gid, uid := uintptr(id.GID), uintptr(id.UID)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(id.Groups)), uintptr(first), 0); errno != 0 {
		return fmt.Errorf("set groups %v: %w", id.Groups, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); errno != 0 {
		return fmt.Errorf("set group %d: %w", id.GID, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return fmt.Errorf("set user %d: %w", id.UID, errno)
	}
	return nil
}

// holdCapabilities sets what the thread holds now. A user other than root holds
// none, as in a real container: the bounding set alone gives nothing.
func holdCapabilities(id spec.Identity) error {
	held := id.Capabilities
	if id.UID != 0 {
		held = 0
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	low, high := uint32(held), uint32(held>>32)
	data := [2]unix.CapUserData{
		{Effective: low, Permitted: low},
		{Effective: high, Permitted: high},
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("set capabilities %x: %w", uint64(held), err)
	}
	return nil
}
