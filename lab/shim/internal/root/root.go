// Package root builds the file system of one container inside a mount namespace
// of its own and makes it the root directory.
//
// There are no images: the lowest layer is the machine's root. An overlay on a
// tmpfs makes it writable, so what a container writes is gone with it and never
// seen by the machine. Read Build first.
package root

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport.test/lab/shim/spec"
)

// Build makes the root of c and enters it. The calling process is alone in a new
// mount namespace and has joined the pod's network namespace already, because
// sysfs shows the network namespace it was mounted from.
func Build(c *spec.Container) error {
	// Slave, not private: volumes that ask for it follow later mounts of the node.
	if err := mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return err
	}
	root, err := overlay(c.Scratch, c.Privileged)
	if err != nil {
		return err
	}
	steps := []func(string, *spec.Container) error{mountSystem, mountDev, mountBinds, mountVolumes, protect}
	for _, step := range steps {
		if err := step(root, c); err != nil {
			return err
		}
	}
	return enter(root, c.ReadOnlyRoot)
}

// overlay stacks a tmpfs on the machine's root and returns the merged folder.
func overlay(scratch string, privileged bool) (string, error) {
	if err := mount("tmpfs", scratch, "tmpfs", 0, "mode=755"); err != nil {
		return "", err
	}
	upper, work, merged := filepath.Join(scratch, "upper"), filepath.Join(scratch, "work"), filepath.Join(scratch, "merged")
	for _, dir := range []string{upper, work, merged} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", err
		}
	}
	// Containers have MKNOD by default and no device cgroup holds them back: without
	// nodev they could make a node for the machine's disk.
	flags := uintptr(unix.MS_NODEV)
	if privileged {
		flags = 0
	}
	return merged, mount("overlay", merged, "overlay", flags, "lowerdir=/,upperdir="+upper+",workdir="+work)
}

// mountSystem mounts what the kernel offers. Without privilege /sys is read-only,
// as in a real container; /proc/sys is protected by the manifest's own lists.
func mountSystem(root string, c *spec.Container) error {
	const noExec = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	sysFlags := uintptr(noExec | unix.MS_RDONLY)
	if c.Privileged {
		sysFlags = noExec
	}
	if err := mount("proc", filepath.Join(root, "proc"), "proc", noExec, ""); err != nil {
		return err
	}
	if err := mount("sysfs", filepath.Join(root, "sys"), "sysfs", sysFlags, ""); err != nil {
		return err
	}
	return mount("tmpfs", filepath.Join(root, "run"), "tmpfs", unix.MS_NODEV, "mode=755")
}

// mountBinds brings in the mounts of the machine that an overlay leaves out.
func mountBinds(root string, c *spec.Container) error {
	for _, path := range c.Binds {
		if err := bind(root, spec.Mount{Source: path, Target: path}); err != nil {
			return err
		}
	}
	return nil
}

// mountVolumes binds the volumes, outer ones first, so that a volume inside
// another is not covered by it.
func mountVolumes(root string, c *spec.Container) error {
	volumes := slices.Clone(c.Mounts)
	slices.SortStableFunc(volumes, func(a, b spec.Mount) int { return len(split(a.Target)) - len(split(b.Target)) })
	for _, volume := range volumes {
		if err := bind(root, volume); err != nil {
			return err
		}
	}
	return nil
}

func bind(root string, m spec.Mount) error {
	info, err := os.Stat(m.Source)
	if err != nil {
		return fmt.Errorf("volume for %s: %w", m.Target, err)
	}
	target, err := makeTarget(root, m.Target, info.IsDir())
	if err != nil {
		return fmt.Errorf("mount point %s: %w", m.Target, err)
	}
	if err := mount(m.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if !m.Follow {
		if err := mount("", target, "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
			return err
		}
	}
	if m.ReadOnly {
		return readOnly(target, m.Recursive)
	}
	return nil
}

// protect hides and write-protects the paths that the manifest's procMount names.
func protect(root string, c *spec.Container) error {
	for _, path := range c.ReadOnlyPaths {
		target, err := resolve(root, path)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(target); err != nil {
			continue // not every kernel has every path
		}
		if err := mount(target, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
		if err := readOnly(target, true); err != nil {
			return err
		}
	}
	for _, path := range c.MaskedPaths {
		if err := mask(root, path); err != nil {
			return err
		}
	}
	return nil
}

func mask(root, path string) error {
	target, err := resolve(root, path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(target)
	if err != nil {
		return nil // not every kernel has every path
	}
	if info.IsDir() {
		return mount("tmpfs", target, "tmpfs", unix.MS_RDONLY, "size=0k")
	}
	return mount("/dev/null", target, "", unix.MS_BIND, "")
}

// enter makes root the root directory and drops the machine's tree.
func enter(root string, readOnlyRoot bool) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	// pivot_root(".", ".") puts the old root on top of the new one, where the
	// detach finds it: no folder for the old root is needed (pivot_root(2)).
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the machine's root: %w", err)
	}
	if readOnlyRoot {
		return readOnly("/", false)
	}
	return nil
}

// readOnly write-protects a mount and leaves its other flags alone.
func readOnly(target string, recursive bool) error {
	var flags uint
	if recursive {
		flags = unix.AT_RECURSIVE
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, target, flags, &attr); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		what := strings.TrimSpace(kind + " " + source)
		return fmt.Errorf("mount %s on %s: %w", what, target, err)
	}
	return nil
}
