package monitor

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is the pause between two looks for left-over processes.
const lookAgain = 10 * time.Millisecond

// mountNamespace names the mount namespace of a process.
func mountNamespace(pid int) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
}

// openMounts holds the mount namespace of a process. While it is open nobody else
// gets the number of the namespace: without it, `ip netns exec` of a test had the
// number of a container that had just ended, and was killed as a part of it.
func openMounts(pid int) (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
}

// endOthers kills what is left of a container after its first process. With a pid
// namespace of its own the kernel has done so already; with a shared one (the
// pod's, the machine's) the mount namespace tells who belongs to the container,
// as a cgroup would.
func endOthers(held *os.File) {
	defer held.Close()
	mounts, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", held.Fd()))
	if err != nil {
		return
	}
	deadline := time.Now().Add(drainLimit)
	for killAll(mounts) && time.Now().Before(deadline) {
		time.Sleep(lookAgain) // a dying process may have forked: look once more
	}
}

// killAll sends SIGKILL to every process of the mount namespace and says whether there was any.
func killAll(mounts string) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	found := false
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if theirs, err := mountNamespace(pid); err == nil && theirs == mounts {
			found = unix.Kill(pid, unix.SIGKILL) == nil || found
		}
	}
	return found
}
