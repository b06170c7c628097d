package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"sallyport.test/lab/shim/handshake"
	"sallyport.test/lab/shim/internal/namespace"
	"sallyport.test/lab/shim/internal/terminal"
	"sallyport.test/lab/shim/spec"
)

// execCommand runs one more process in a container, waits for it and ends with
// its exit code. The waiting is needed because only a child can be in another
// pid namespace.
func execCommand([]string) error {
	var e spec.Exec
	parent, err := handshake.Receive(&e)
	if err != nil {
		return err
	}
	cmd, err := startIn(&e, parent)
	if err != nil {
		return report(parent, err)
	}
	parent.Ready(cmd.Process.Pid)
	go killAtSignal(cmd.Process)
	return exitLike(cmd.Wait())
}

// killAtSignal takes the process along when the kubelet gives up on it.
func killAtSignal(process *os.Process) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	process.Kill()
}

// startIn enters the namespaces of the target and starts the process. The thread
// takes the container's identity before it forks, so that nothing privileged is
// left to do in the child.
func startIn(e *spec.Exec, parent *handshake.Child) (*exec.Cmd, error) {
	for _, kind := range []string{"net", "ipc", "uts", "pid"} {
		if err := namespace.Enter(fmt.Sprintf("/proc/%d/ns/%s", e.Target, kind)); err != nil {
			return nil, err
		}
	}
	// The mount namespace is last: behind it, /proc is the container's.
	if err := namespace.EnterMount(fmt.Sprintf("/proc/%d/ns/mnt", e.Target)); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Args: e.Args, Env: e.Env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if e.Terminal {
		slave, err := openTerminal(e.Identity.UID, parent)
		if err != nil {
			return nil, err
		}
		defer slave.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr.Setctty = true
	}
	var err error
	if cmd.Path, err = prepare(e.Process); err != nil {
		return nil, err
	}
	return cmd, cmd.Start()
}

// openTerminal opens a terminal of the container, sends the master end to the
// kubelet and returns the other.
func openTerminal(uid uint32, parent *handshake.Child) (*os.File, error) {
	master, slave, err := terminal.Open()
	if err != nil {
		return nil, err
	}
	defer master.Close()
	if err := slave.Chown(int(uid), -1); err != nil {
		return nil, err
	}
	return slave, parent.SendTerminal(master)
}

// exitLike ends this process as the child ended.
func exitLike(err error) error {
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		return err
	}
	if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		os.Exit(128 + int(status.Signal()))
	}
	os.Exit(failed.ExitCode())
	return nil
}
