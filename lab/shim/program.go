package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sallyport.test/lab/shim/internal/identity"
	"sallyport.test/lab/shim/spec"
)

// usageError is a mistake in the command line.
type usageError struct{ error }

// exitCode is the shim's own exit code for an error.
func exitCode(err error) int {
	var usage usageError
	var lookup *exec.Error
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &lookup):
		return exitNotFound
	}
	return exitFailed
}

// become replaces the calling process by the program of p, under p's identity.
// Root and namespaces are in place already. It only returns on an error.
func become(p spec.Process) error {
	path, err := prepare(p)
	if err != nil {
		return err
	}
	// The kernel forgets this wish when a process changes its user, so it comes last.
	if err := endWithParent(); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", path, syscall.Exec(path, p.Args, p.Env))
}

// endWithParent asks the kernel to kill this process when its parent dies. Go's own
// Pdeathsig cannot be used across pid namespaces: it takes a parent it cannot see
// for a dead one.
func endWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the parent: %w", err)
	}
	return nil
}

// prepare finds the program and takes its working directory and identity.
func prepare(p spec.Process) (path string, err error) {
	// A working directory that is missing is made, as container runtimes do.
	if err := os.MkdirAll(p.Cwd, 0o755); err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	if err := os.Chdir(p.Cwd); err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	if path, err = lookPath(p); err != nil {
		return "", err
	}
	if err := ownStdio(p.Identity.UID); err != nil {
		return "", err
	}
	return path, identity.Apply(p.Identity)
}

// lookPath finds the program with the container's PATH, not the shim's.
func lookPath(p spec.Process) (string, error) {
	for _, entry := range p.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			if err := os.Setenv("PATH", value); err != nil {
				return "", err
			}
		}
	}
	path, err := exec.LookPath(p.Args[0])
	if errors.Is(err, exec.ErrDot) {
		return path, nil // "." in PATH is the container's own wish
	}
	return path, err
}

// ownStdio gives pipes and terminals of the standard descriptors to the user, who
// could otherwise not open /dev/stdout. The null device stays as it is.
func ownStdio(uid uint32) error {
	for fd := range 3 {
		var info unix.Stat_t
		if err := unix.Fstat(fd, &info); err != nil {
			return fmt.Errorf("standard descriptor %d: %w", fd, err)
		}
		null := info.Mode&unix.S_IFMT == unix.S_IFCHR && info.Rdev == unix.Mkdev(1, 3)
		if null || info.Uid == uid {
			continue
		}
		if err := unix.Fchown(fd, int(uid), -1); err != nil {
			return fmt.Errorf("own standard descriptor %d: %w", fd, err)
		}
	}
	return nil
}
