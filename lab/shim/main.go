// Command labshim is the small program between the lab's kubelet and the
// processes of its pods, and a few tools for the lab's driver. README.md has the
// whole list; each command is one file.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

const usage = `labshim: starts what runs in the lab's nodes

For the driver:
  labshim inns [-net PATH] [-mount new|PATH] -- COMMAND...
        become COMMAND in another network or mount namespace (same pid)
  labshim relay -listen HOST:PORT -netns PATH -dial HOST:PORT
        listen here, connect from there; prints "listening HOST:PORT"

For the lab's kubelet (spec on descriptor 3):
  labshim monitor | pause | run | exec
`

// Exit codes follow shells and container engines.
const (
	exitUsage    = 2
	exitFailed   = 125 // the shim could not do its part
	exitNotFound = 127 // the command does not exist
)

// errReported is the error of a stage that has told its parent already.
var errReported = errors.New("reported")

// init runs on the main thread and keeps it: namespaces, credentials and the
// signal at a parent's death all belong to threads, not to goroutines.
func init() { runtime.LockOSThread() }

func main() {
	commands := map[string]func([]string) error{
		"inns":    inns,
		"relay":   relayCommand,
		"monitor": monitorCommand,
		"pause":   pauseCommand,
		"run":     runCommand,
		"exec":    execCommand,
	}
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	if name == "-help" || name == "--help" {
		fmt.Print(usage)
		return
	}
	command := commands[name]
	if command == nil {
		fmt.Fprintf(os.Stderr, "labshim: %q is not a command; labshim -help lists them\n", name)
		os.Exit(exitUsage)
	}
	err := command(os.Args[2:])
	if errors.Is(err, errReported) {
		os.Exit(exitFailed)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "labshim %s: %v\n", name, err)
		os.Exit(exitCode(err))
	}
}
