package root

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport.test/lab/shim/spec"
)

// devices are the nodes every container has (OCI runtime specification, "Default Devices").
var devices = []struct {
	name         string
	major, minor uint32
}{
	{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
}

// deviceLinks are the usual names that lead elsewhere.
var deviceLinks = []struct{ name, target string }{
	{"fd", "/proc/self/fd"},
	{"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"},
	{"ptmx", "pts/ptmx"},
}

// mountDev gives the container a /dev with harmless devices, or the machine's if
// it is privileged, and always terminals and shared memory of its own.
func mountDev(root string, c *spec.Container) error {
	dev := filepath.Join(root, "dev")
	if c.Privileged {
		if err := mount("/dev", dev, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
	} else if err := fillDev(dev); err != nil {
		return err
	}
	const quiet = unix.MS_NOSUID | unix.MS_NOEXEC
	own := []struct {
		source, name, kind string
		flags              uintptr
		data               string
	}{
		{"devpts", "pts", "devpts", quiet, "newinstance,ptmxmode=0666,mode=0620,gid=5"},
		{"mqueue", "mqueue", "mqueue", quiet | unix.MS_NODEV, ""},
		// The pod's own, shared by its containers; the machine's for hostIPC.
		{c.SharedMemory, "shm", "", unix.MS_BIND, ""},
	}
	for _, m := range own {
		target := filepath.Join(dev, m.name)
		if _, err := os.Stat(target); err != nil {
			continue // a folder the machine's /dev lacks; it is not ours to make
		}
		if err := mount(m.source, target, m.kind, m.flags, m.data); err != nil {
			return err
		}
	}
	return nil
}

func fillDev(dev string) error {
	if err := mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755,size=64k"); err != nil {
		return err
	}
	for _, name := range []string{"pts", "shm", "mqueue"} {
		if err := os.Mkdir(filepath.Join(dev, name), 0o755); err != nil {
			return err
		}
	}
	for _, d := range devices {
		path := filepath.Join(dev, d.name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return fmt.Errorf("make device %s: %w", d.name, err)
		}
		if err := os.Chmod(path, 0o666); err != nil { // Mknod obeys the umask
			return err
		}
	}
	for _, l := range deviceLinks {
		if err := os.Symlink(l.target, filepath.Join(dev, l.name)); err != nil {
			return err
		}
	}
	return nil
}
