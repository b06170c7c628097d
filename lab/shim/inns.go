package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"sallyport.test/lab/shim/internal/namespace"
)

// inns becomes a command in other namespaces. Unlike "ip netns exec" and
// nsenter it needs no names, forks nothing and can enter a mount namespace that
// some process still holds.
func inns(args []string) error {
	flags := flag.NewFlagSet("inns", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	network := flags.String("net", "", "path of a network namespace")
	mounts := flags.String("mount", "", `"new" or the path of a mount namespace`)
	if err := flags.Parse(args); err != nil {
		return usageError{err}
	}
	if flags.NArg() == 0 {
		return usageError{errors.New("no command given")}
	}
	if err := namespace.Enter(*network); err != nil {
		return err
	}
	if err := enterMounts(*mounts); err != nil {
		return err
	}
	path, err := exec.LookPath(flags.Arg(0))
	if err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", path, syscall.Exec(path, flags.Args(), os.Environ()))
}

func enterMounts(which string) error {
	switch which {
	case "":
		return nil
	case "new":
		return namespace.NewMount()
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := namespace.EnterMount(which); err != nil {
		return err
	}
	return os.Chdir(cwd) // entering a mount namespace moves to its root
}
