// Package terminal opens pseudo terminals of the container the calling thread is in.
package terminal

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Open returns both ends of a new pseudo terminal from /dev/pts of the calling
// thread's root. It opens the container's, not the machine's, so that ttyname(3)
// works inside.
func Open() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/pts/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	slave, err = openSlave(master)
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	return master, slave, nil
}

func openSlave(master *os.File) (*os.File, error) {
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	return os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
}

// Become makes slave the controlling terminal and the standard input and output
// of the calling process, which must be about to exec.
func Become(slave *os.File) error {
	// EPERM: the process leads a group already, which is what the next call needs.
	if _, err := unix.Setsid(); err != nil && err != unix.EPERM {
		return fmt.Errorf("new session: %w", err)
	}
	if err := unix.IoctlSetInt(int(slave.Fd()), unix.TIOCSCTTY, 0); err != nil {
		return fmt.Errorf("controlling terminal: %w", err)
	}
	for fd := range 3 {
		if err := unix.Dup3(int(slave.Fd()), fd, 0); err != nil {
			return fmt.Errorf("standard descriptor %d: %w", fd, err)
		}
	}
	return nil
}
