// Package process names, watches and ends processes that are not necessarily
// children of the caller: a kubelet that comes back after a crash finds its pods
// with it. Read Ref first.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrGone says that the process has ended, or that its pid is another's now.
var ErrGone = errors.New("the process has ended")

// Ref names one process for good: pids are used again, but not with the same
// start time. It can be kept in a file.
type Ref struct {
	PID int `json:"pid"`
	// Start is in clock ticks since boot: field 22 of /proc/PID/stat, proc(5).
	Start uint64 `json:"start"`
}

// Find makes the Ref of a living process, or returns ErrGone. A zombie that nobody has
// reaped yet is gone too: its namespaces cannot be entered any more.
func Find(pid int) (Ref, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return Ref{}, ErrGone
	}
	if err != nil {
		return Ref{}, err
	}
	state, start, err := parseStat(stat)
	if err != nil {
		return Ref{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	if state == 'Z' || state == 'X' {
		return Ref{}, ErrGone
	}
	return Ref{PID: pid, Start: start}, nil
}

// parseStat reads state and start time. The second field is the program's name in
// brackets and may hold blanks and brackets, so counting starts after the last one.
func parseStat(stat []byte) (state byte, start uint64, err error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, 0, errors.New("too few fields")
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return fields[0][0], start, err
}

// Watch is an open hold on a process. It does not need to be a child.
type Watch struct {
	pid  int
	file *os.File
}

// Open holds the process, or returns ErrGone.
func (r Ref) Open() (*Watch, error) {
	// Non-blocking, so that Go's poller waits instead of a thread.
	fd, err := unix.PidfdOpen(r.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", r.PID, err)
	}
	watch := &Watch{r.PID, os.NewFile(uintptr(fd), "pidfd")}
	// Compare now: the descriptor keeps the pid from being used again.
	if found, err := Find(r.PID); err != nil || found != r {
		watch.file.Close()
		return nil, ErrGone
	}
	return watch, nil
}

// Wait returns when the process has ended and, if it was a child, reaps it. It is
// called once and ends the hold.
func (w *Watch) Wait() error {
	defer w.file.Close()
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	// A pidfd becomes readable when its process ends (pidfd_open(2)).
	err = raw.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, _ := unix.Poll(poll, 0)
		return n > 0
	})
	if err != nil {
		return fmt.Errorf("wait for process %d: %w", w.pid, err)
	}
	// ECHILD: not ours to reap.
	if _, err := unix.Wait4(w.pid, nil, unix.WNOHANG, nil); err != nil && !errors.Is(err, unix.ECHILD) {
		return fmt.Errorf("reap process %d: %w", w.pid, err)
	}
	return nil
}

// Close ends the hold without waiting; the process is left alone.
func (w *Watch) Close() error { return w.file.Close() }
