package control

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Apply gives a terminal this size. A size without an extent is ignored: some
// clients send one before they know better.
func (s Size) Apply(master *os.File) error {
	if s.Width == 0 || s.Height == 0 {
		return nil
	}
	raw, err := master.SyscallConn() // Fd would make the file block
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Height, Col: s.Width})
	})
	return errors.Join(err, failed)
}
