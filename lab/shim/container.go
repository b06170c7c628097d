package main

import (
	"errors"

	"sallyport.test/lab/shim/handshake"
	"sallyport.test/lab/shim/internal/monitor"
	"sallyport.test/lab/shim/internal/namespace"
	"sallyport.test/lab/shim/internal/pause"
	"sallyport.test/lab/shim/internal/root"
	"sallyport.test/lab/shim/internal/terminal"
	"sallyport.test/lab/shim/spec"
)

// monitorCommand supervises a container or a sandbox until it ends.
func monitorCommand([]string) error {
	var s spec.Monitor
	parent, err := handshake.Receive(&s)
	if err != nil {
		return err
	}
	started := false
	err = monitor.Run(&s, func(pid int) {
		started = true
		parent.Ready(pid)
	})
	if err != nil && !started {
		return report(parent, err)
	}
	return err
}

// pauseCommand holds a pod's namespaces; the monitor has made them.
func pauseCommand([]string) error {
	var s spec.Sandbox
	parent, err := handshake.Receive(&s)
	if err != nil {
		return err
	}
	if err := errors.Join(endWithParent(), pause.Prepare(&s)); err != nil {
		return report(parent, err)
	}
	parent.Ready(0)
	pause.Hold()
	return nil
}

// runCommand becomes a container's program; the monitor has made its mount and
// pid namespaces.
func runCommand([]string) error {
	var c spec.Container
	parent, err := handshake.Receive(&c)
	if err != nil {
		return err
	}
	return report(parent, run(&c, parent))
}

// report tells the parent why this stage has failed.
func report(parent *handshake.Child, err error) error {
	parent.Fail(err)
	return errReported
}

func run(c *spec.Container, parent *handshake.Child) error {
	for _, path := range []string{c.Namespaces.Net, c.Namespaces.IPC, c.Namespaces.UTS} {
		if err := namespace.Enter(path); err != nil {
			return err
		}
	}
	if err := root.Build(c); err != nil {
		return err
	}
	if c.Terminal {
		master, slave, err := terminal.Open()
		if err != nil {
			return err
		}
		if err := parent.SendTerminal(master); err != nil {
			return err
		}
		if err := terminal.Become(slave); err != nil {
			return err
		}
	}
	return become(c.Process)
}
